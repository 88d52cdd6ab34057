package demo

import (
	"strings"

	"github.com/tidwall/gjson"
)

// maxDepth ends the filling of a schema that refers to itself.
const maxDepth = 16

// fill returns a small JSON value of the schema's type: its required properties
// and nothing more, with text in its strings.
func fill(schema gjson.Result, text string) string {
	return filling{root: schema, text: string(marshal(text))}.value(schema, 0)
}

type filling struct {
	root gjson.Result
	text string // as JSON
}

func (f filling) value(schema gjson.Result, depth int) string {
	if depth > maxDepth {
		return "null"
	}
	for _, key := range []string{"const", "enum.0", "default"} {
		if v := schema.Get(key); v.Exists() {
			return v.Raw
		}
	}
	for _, key := range []string{"anyOf.0", "oneOf.0", "allOf.0"} {
		if v := schema.Get(key); v.Exists() {
			return f.value(v, depth+1)
		}
	}
	if ref := schema.Get("$ref"); ref.Exists() {
		return f.value(f.resolve(ref.String()), depth+1)
	}
	kind := schema.Get("type")
	if kind.IsArray() {
		kind = kind.Get("0")
	}
	switch kind.String() {
	case "string":
		return f.text
	case "integer", "number":
		if least := schema.Get("minimum"); least.Exists() {
			return least.Raw
		}
		return "0"
	case "boolean":
		return "false"
	case "array":
		return f.array(schema, depth)
	case "null":
		return "null"
	}
	return f.object(schema, depth)
}

func (f filling) array(schema gjson.Result, depth int) string {
	items := make([]string, min(schema.Get("minItems").Int(), maxDepth))
	for i := range items {
		items[i] = f.value(schema.Get("items"), depth+1)
	}
	return "[" + strings.Join(items, ",") + "]"
}

func (f filling) object(schema gjson.Result, depth int) string {
	properties := schema.Get("properties").Map()
	var fields []string
	for _, name := range schema.Get("required").Array() {
		key := string(marshal(name.String()))
		fields = append(fields, key+":"+f.value(properties[name.String()], depth+1))
	}
	return "{" + strings.Join(fields, ",") + "}"
}

// resolve follows a reference into the schema's own definitions.
func (f filling) resolve(ref string) gjson.Result {
	at := f.root
	for name := range strings.SplitSeq(strings.TrimPrefix(ref, "#"), "/") {
		if name != "" {
			at = at.Map()[name]
		}
	}
	return at
}
