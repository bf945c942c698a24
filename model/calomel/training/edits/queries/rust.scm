; As python.scm. A `macro` may hold calls, too.
[(identifier) (field_identifier) (type_identifier) (shorthand_field_identifier)] @name
[(function_item) (function_signature_item) (closure_expression)] @function
(call_expression) @call
(token_tree) @macro
(struct_item name: (type_identifier) @type)
(enum_item name: (type_identifier) @type)
(trait_item name: (type_identifier) @type)
(type_item name: (type_identifier) @type)

(let_declaration pattern: (identifier) @value)
(let_declaration pattern: (tuple_pattern (identifier) @value))
(for_expression pattern: (identifier) @value)
(const_item name: (identifier) @value)
(static_item name: (identifier) @value)
(field_declaration name: (field_identifier) @field)

(field_initializer field: (field_identifier) @key)
(field_pattern name: (field_identifier) @key)
(parameter pattern: (identifier) @declared)
(use_list (identifier) @outside)
(use_as_clause (identifier) @outside)
(use_declaration (identifier) @outside)
