"""The recipe with vLLM, as far as it can be checked without a GPU: vLLM and Ray Serve's other packages are not here.

`ray.serve.llm` imports them, so that Ray's own source is read instead.
"""

import ast
from importlib.metadata import metadata
from importlib.util import find_spec
from pathlib import Path

from servers.cluster import MARKS

pytestmark = MARKS
DOCS = Path(__file__).parents[2] / "docs" / "ray.md"
CONFIGS = Path("llm", "_internal", "serve", "core")


def ray_source(*parts: str) -> ast.Module:
    spec = find_spec("ray")
    assert spec
    assert spec.origin
    return ast.parse(Path(spec.origin).parent.joinpath(*parts).read_text(encoding="utf-8"))


def fields_of(tree: ast.Module, name: str) -> set[str]:
    """The annotated fields of a class."""
    (found,) = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name]
    return {str(ast.unparse(node.target)) for node in found.body if isinstance(node, ast.AnnAssign)}


def recipe() -> ast.Module:
    """The Python block, which compiles."""
    (block,) = [part.partition("```")[0] for part in DOCS.read_text(encoding="utf-8").split("```python\n")[1:]]
    compile(block, str(DOCS), "exec")
    return ast.parse(block)


def test_names() -> None:
    """What the recipe imports from Ray is public there."""
    imports = [node for node in ast.walk(recipe()) if isinstance(node, ast.ImportFrom)]
    assert [node.module for node in imports] == ["ray.serve.llm"]
    tree = ray_source("serve", "llm", "__init__.py")
    public = {
        node.name
        for node in tree.body
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and "PublicAPI" in ast.unparse(node.decorator_list[0])
    }
    assert {alias.name for node in imports for alias in node.names} <= public


def test_settings() -> None:
    """Ray has every setting that the recipe names."""
    calls = {ast.unparse(node.func): node for node in ast.walk(recipe()) if isinstance(node, ast.Call)}
    config, app = calls["LLMConfig"], calls["build_openai_app"]
    configs = ray_source(*CONFIGS.parts, "configs", "llm_config.py")
    given = {str(keyword.arg): keyword.value for keyword in config.keywords}
    assert given.keys() <= fields_of(configs, "LLMConfig")
    assert keys(given["model_loading_config"]) <= fields_of(configs, "ModelLoadingConfig")
    assert keys(app.args[0]) <= fields_of(ray_source(*CONFIGS.parts, "ingress", "builder.py"), "LLMServingArgs")
    deployment = given["deployment_config"]
    assert isinstance(deployment, ast.Dict)
    assert keys(deployment) <= fields_of(ray_source("serve", "_private", "config.py"), "DeploymentConfig")
    assert keys(deployment.values[0]) <= fields_of(ray_source("serve", "config.py"), "AutoscalingConfig")


def test_commands() -> None:
    """Ray's commands have the options that the recipe gives them."""
    text = DOCS.read_text(encoding="utf-8")
    assert "\nserve start --http-host 0.0.0.0 " in text
    assert "\nserve run serve_judge:app " in text
    commands = {node.name: node for node in ray_source("serve", "scripts.py").body if isinstance(node, ast.FunctionDef)}
    assert "http_host" in [argument.arg for argument in commands["start"].args.args]
    assert "config_or_import_path" in [argument.arg for argument in commands["run"].args.args]
    assert "llm" in (metadata("ray").get_all("Provides-Extra") or [])


def keys(node: ast.expr) -> set[str]:
    assert isinstance(node, ast.Dict)
    return {key.value for key in node.keys if isinstance(key, ast.Constant) and isinstance(key.value, str)}
