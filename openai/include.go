package openai

import "github.com/tidwall/gjson"

const includeUsage = "include_usage"

// askForUsage sets stream_options.include_usage. Where stream_options is
// something that has no members, it is left to the router to judge.
func (c *Chat) askForUsage() []splice {
	for _, f := range c.fields {
		if f.name != "stream_options" {
			continue
		}
		raw := unsafeString(c.body[f.start:f.end])
		options := gjson.Parse(raw)
		if options.Type == gjson.Null {
			return []splice{{start: f.start, end: f.end, with: [][]byte{[]byte(`{"include_usage":true}`)}}}
		}
		if !options.IsObject() {
			return nil
		}
		if v := options.Get(includeUsage); v.Exists() {
			start := f.start + offset(raw, v.Raw)
			return []splice{{start: start, end: start + len(v.Raw), with: [][]byte{[]byte("true")}}}
		}
		with := []byte(`"include_usage":true`)
		options.ForEach(func(_, _ gjson.Result) bool {
			with = append(with, ',')
			return false
		})
		return []splice{{start: f.start + 1, end: f.start + 1, with: [][]byte{with}}}
	}
	first := c.fields[0].key // a chat has a model and messages
	return []splice{{start: first, end: first, with: [][]byte{[]byte(`"stream_options":{"include_usage":true},`)}}}
}
