"""Further opinions on a record: asked again, of another judge, with its contexts in another order."""
