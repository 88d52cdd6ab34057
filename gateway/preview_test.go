package gateway_test

import (
	"github.com/tidwall/gjson"
)

// addsUp checks that a preview's parts tell of all tokens of the prompt.
func (s *site) addsUp(p reply) {
	s.t.Helper()
	parts, total := sum(s.ok(p).get("parts.#.tokens")), p.get("_metadata.context.totalTokens").Int()
	if parts == 0 || parts != total {
		s.t.Errorf("the parts take %d tokens of %d: %s", parts, total, p.get("parts"))
	}
}

func sum(numbers gjson.Result) (n int64) {
	for _, v := range numbers.Array() {
		n += v.Int()
	}
	return n
}
