; What the makers of stories look for in Python. The captures: every `name`, `function` and `call`; where a `class` begins;
; where a name of a `value`, a `type` or a `field` is defined; and names with a part of their own: a `key` of a literal, the
; `keyword` of an argument, one `declared` anew, one from `outside` of the file.
(identifier) @name
(function_definition) @function
(call) @call
(class_definition name: (identifier) @type) @class

(assignment left: (identifier) @value)
(assignment left: (pattern_list (identifier) @value))
(assignment left: (tuple_pattern (identifier) @value))
(for_statement left: (identifier) @value)
(for_statement left: (pattern_list (identifier) @value))
(named_expression name: (identifier) @value @declared)
(assignment left: (attribute object: (identifier) @_object attribute: (identifier) @field) (#eq? @_object "self"))

(keyword_argument name: (identifier) @keyword)
(pair key: (identifier) @key)
(parameters (identifier) @declared)
(lambda_parameters (identifier) @declared)
(default_parameter name: (identifier) @declared)
(typed_parameter . (identifier) @declared)
(import_statement (dotted_name (identifier) @outside))
(import_from_statement (dotted_name (identifier) @outside))
(aliased_import (dotted_name (identifier) @outside))
(aliased_import alias: (identifier) @outside)
(global_statement (identifier) @outside)
(nonlocal_statement (identifier) @outside)
