"""Preference alignment: what people took becomes likelier, what they rejected less likely, and silence an answer."""
