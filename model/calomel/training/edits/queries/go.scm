; As python.scm.
[(identifier) (field_identifier) (type_identifier) (package_identifier) (label_name)] @name
[(function_declaration) (method_declaration) (method_elem) (func_literal)] @function
(call_expression) @call
(type_spec name: (type_identifier) @type)

(short_var_declaration left: (expression_list (identifier) @value))
(range_clause left: (expression_list (identifier) @value))
(var_spec name: (identifier) @value)
(const_spec name: (identifier) @value)
(field_declaration name: (field_identifier) @field)

(keyed_element . (literal_element (identifier) @key))
(parameter_declaration name: (identifier) @declared)
(import_spec name: (package_identifier) @outside)
