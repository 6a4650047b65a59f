"use strict";

/* What is shown of a record. What is in it is text, and goes into the page as text only. */
const records = (() => {
  const number = new Intl.NumberFormat("en");

  /** An element with properties and children; children that are text become text. */
  function make(tag, properties, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(properties || {})) {
      if (value === null || value === undefined) continue;
      if (name === "class") element.className = value;
      else element.setAttribute(name, value);
    }
    element.append(...children.filter((child) => child !== null && child !== undefined));
    return element;
  }

  /** Text with its control characters as pictures, one for one: they would not be seen. */
  const visible = (text) => text.replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f]/g, (found) => String.fromCharCode(0x2400 + found.charCodeAt(0)));

  /** A paragraph of a record's own text. */
  const prose = (text, language, tag = "p") =>
    make(tag, { class: "text", dir: "auto", lang: language && language !== "en" ? language : null }, visible(text));

  /** What of a record is searched. */
  function textOf(record) {
    const parts = [record.id, record.question, record.answer || ""];
    for (const context of record.contexts || []) parts.push(context.text);
    for (const verdict of record.verdicts) {
      if (verdict.error) parts.push(verdict.error.kind, verdict.error.message);
      for (const context of verdict.contexts || []) parts.push(...(context.sentences || []));
      for (const item of [...(verdict.claims || []), ...(verdict.quotes || [])]) parts.push(item.text);
      parts.push(JSON.stringify(verdict.values));
    }
    for (const name of ["inputs", "kept", "input"]) if (record[name]) parts.push(JSON.stringify(record[name]));
    return parts.join("\n");
  }

  const scoreText = (score) => (score === null ? "–" : String(Math.round(score * 1000) / 1000));

  /** Everything about a record; its contexts are marked by what one evaluator named. */
  function detailOf(record, evaluator) {
    const verdict = record.verdicts.find((one) => one.evaluator === evaluator) || record.verdicts[0];
    const parts = [
      make("p", { class: "id" }, `record ${record.index}, id `, make("bdi", null, visible(record.id)), ...fileOf(record)),
      make("h3", null, "Question"),
      prose(record.question, record.language),
    ];
    if (record.answer) parts.push(make("h3", null, "Answer"), prose(record.answer, record.language));
    for (const one of record.verdicts) parts.push(...verdictOf(one, record));
    parts.push(...contextsOf(verdict, record));
    for (const [name, title] of [["inputs", "Further inputs"], ["kept", "Kept fields"], ["input", "The record"]]) {
      if (record[name] && Object.keys(record[name]).length) parts.push(make("h3", null, title), valuesOf(record[name]));
    }
    return parts;
  }

  const fileOf = (record) => (record.file ? [", of ", make("bdi", null, visible(record.file))] : []);

  function verdictOf(verdict, record) {
    const parts = [
      make(
        "h3",
        null,
        `${verdict.evaluator}: `,
        verdict.status === "evaluated" ? scoreText(verdict.score) : make("span", { class: "chip bad" }, verdict.error.kind),
      ),
    ];
    if (verdict.error) parts.push(make("div", { class: "error" }, prose(verdict.error.message, null)));
    if (verdict.claims?.length) parts.push(make("ul", { class: "statements" }, ...verdict.claims.map((claim) => claimOf(claim, record))));
    if (verdict.quotes?.length) parts.push(make("ul", { class: "statements" }, ...verdict.quotes.map(quoteOf)));
    if (verdict.status === "evaluated" && Object.keys(verdict.values).length) parts.push(valuesOf(verdict.values));
    parts.push(...opinionsOf(verdict));
    const usage = factsOf(verdict.facts);
    if (usage) parts.push(make("p", { class: "usage" }, usage));
    return parts;
  }

  /** What the judge, or another, answered when it was asked again. */
  function opinionsOf(verdict) {
    if (!verdict.opinions) return [];
    const repeated = verdict.opinions.some((opinion) => opinion.repeat > 1);
    const majority = verdict.majority === null ? "no majority" : `majority ${scoreText(verdict.majority)}`;
    const heads = ["Further answer", "Judge", "Score", "Relevant contexts"].map((name) => make("th", { scope: "col" }, name));
    return [
      make("h4", null, `Further opinions (${verdict.opinions.length})`, repeated ? make("span", { class: "usage" }, majority) : null),
      make("table", { class: "opinions" }, make("thead", null, make("tr", null, ...heads)), make("tbody", null, ...verdict.opinions.map((opinion) => opinionOf(opinion, verdict)))),
    ];
  }

  function opinionOf(opinion, verdict) {
    const told = opinion.shuffled ? "contexts in another order" : opinion.repeat > 1 ? `answer ${opinion.repeat}` : "second judge";
    const differs = opinion.score !== null && verdict.score !== null && opinion.score !== verdict.score;
    const score = opinion.error ? make("span", { class: "chip bad" }, opinion.error) : make("span", { class: differs ? "chip warn" : "chip plain" }, differs ? `${scoreText(opinion.score)} differs` : scoreText(opinion.score));
    const relevant = opinion.contexts_relevant?.flatMap((one, place) => (one ? [place + 1] : []));
    return make(
      "tr",
      null,
      make("th", { scope: "row" }, told),
      make("td", null, make("bdi", null, visible(opinion.judge))),
      make("td", null, score),
      make("td", null, relevant ? relevant.join(", ") || "none" : "–"),
    );
  }

  function factsOf(facts) {
    const told = [];
    if (facts.model) told.push(facts.model);
    if (facts.usage?.input_tokens || facts.usage?.output_tokens) {
      told.push(`${number.format(facts.usage.input_tokens)} tokens in, ${number.format(facts.usage.output_tokens)} out`);
    }
    if (typeof facts.cost === "number") told.push(`cost ${facts.cost}`);
    if (facts.requests) told.push(`${facts.requests} requests`);
    if (facts.repaired) told.push("reply repaired");
    return told.join(" · ");
  }

  const twoPlaces = (value) => (value === null ? "–" : value.toFixed(2));
  const probability = (claim) => (claim.probabilities?.length ? ` ${twoPlaces(claim.probabilities[0])}` : "");

  function claimOf(claim, record) {
    const item = make(
      "li",
      null,
      make("span", { class: claim.supported ? "chip good" : "chip bad" }, (claim.supported ? "✓ supported" : "✗ not supported") + probability(claim)),
      prose(claim.text, record.language, "div"),
    );
    for (const place of claim.evidence) {
      const text = place.span ? record.contexts[place.context].text.slice(...place.span) : `sentence ${place.sentence}`;
      const language = place.span ? record.contexts[place.context].language : null;
      item.append(make("div", { class: "evidence" }, make("span", { class: "where" }, `context ${place.context + 1}`), prose(text, language, "div")));
    }
    return item;
  }

  function quoteOf(quote) {
    const where = quote.located ? `context ${quote.context + 1}` : "stands nowhere";
    const like = quote.located && quote.similarity < 1 ? `, ${Math.round(quote.similarity * 100)} % alike` : "";
    return make("li", null, make("span", { class: quote.located ? "chip plain" : "chip bad" }, where + like), prose(quote.text, null, "div"));
  }

  function valuesOf(values) {
    const entries = Object.entries(values).map(([name, value]) => {
      const text = typeof value === "string" ? value : JSON.stringify(value, null, value !== null && typeof value === "object" ? 1 : 0);
      return make("div", null, make("dt", { dir: "auto" }, visible(name)), make("dd", null, prose(text, null)));
    });
    return make("dl", { class: "values" }, ...entries);
  }

  /** Where sentences are to be marked, by context: what is relevant, or the evidence of a statement. */
  function spansOf(verdict, count) {
    const spans = Array.from({ length: count }, () => []);
    (verdict.contexts || []).forEach((context, place) => spans[place]?.push(...context.spans));
    for (const item of [...(verdict.claims || []).flatMap((claim) => claim.evidence), ...(verdict.contexts ? [] : verdict.quotes || [])]) {
      if (item.span) spans[item.context]?.push(item.span);
    }
    return spans.map((list) => list.sort((one, other) => one[0] - other[0]));
  }

  function marked(text, spans, language) {
    const element = prose("", language, "div");
    let end = 0;
    for (const [from, to] of spans) {
      if (to <= end) continue;
      const start = Math.max(from, end);
      element.append(visible(text.slice(end, start)), make("mark", null, visible(text.slice(start, to))));
      end = to;
    }
    element.append(visible(text.slice(end)));
    return element;
  }

  function contextsOf(verdict, record) {
    const judgements = verdict.contexts || [];
    const count = record.contexts ? record.contexts.length : judgements.length;
    const parts = [make("h3", null, count ? `Contexts (${count})` : "Contexts")];
    if (!record.contexts && !judgements.length) {
      return verdict.status === "evaluated" && !verdict.contexts ? [] : [...parts, make("p", null, verdict.contexts ? "None was retrieved." : "Not known.")];
    }
    if (!count) return [...parts, make("p", null, "None was retrieved.")];
    const spans = spansOf(verdict, count);
    if (record.verdicts.length > 1 && spans.some((list) => list.length)) parts.push(make("p", { class: "id" }, `marked: what ${verdict.evaluator} named`));
    for (let place = 0; place < count; place += 1) {
      const judgement = judgements[place];
      const heading = make("h4", null, `Context ${place + 1}`);
      if (judgement) heading.append(make("span", { class: judgement.relevant ? "chip good" : "chip plain" }, relevance(judgement)));
      if (judgement?.probabilities?.length > 1) heading.append(make("span", { class: "usage" }, `probabilities ${judgement.probabilities.map(twoPlaces).join(" ")}`));
      else if (judgement?.probabilities?.length) heading.append(make("span", { class: "usage" }, `probability ${twoPlaces(judgement.probabilities[0])}`));
      const box = make("div", { class: "context" });
      if (record.contexts) box.append(marked(record.contexts[place].text, spans[place], record.contexts[place].language));
      else box.append(...sentencesOf(judgement, record));
      parts.push(heading, box);
    }
    return parts;
  }

  const relevance = (judgement) =>
    `${judgement.relevant ? "relevant" : "not relevant"}, ${judgement.relevant_statements} of ${judgement.statements} sentences`;

  function sentencesOf(judgement, record) {
    if (!judgement.sentences?.length) return [make("p", { class: "id" }, "its text is not in the rows")];
    return judgement.sentences.map((sentence) => {
      const element = prose("", record.language);
      element.append(make("mark", null, visible(sentence)), " …");
      return element;
    });
  }

  return { detailOf, make, number, scoreText, textOf, visible };
})();
