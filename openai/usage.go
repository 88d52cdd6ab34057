package openai

import (
	"strings"

	"github.com/tidwall/gjson"
)

// Usage is what a router says that a request took, in tokens. It is zero where
// the router doesn't say.
type Usage struct {
	Prompt     int // the prompt, what came from the router's cache included
	Completion int
}

// maxUsage bounds what is believed of a number of tokens.
const maxUsage = 1 << 31

// readUsage reads a usage object; anything else is no usage.
func readUsage(v gjson.Result) Usage {
	if !v.IsObject() {
		return Usage{}
	}
	return Usage{Prompt: tokensOf(v.Get("prompt_tokens")), Completion: tokensOf(v.Get("completion_tokens"))}
}

func tokensOf(v gjson.Result) int {
	if v.Type != gjson.Number || !(v.Num > 0 && v.Num < maxUsage) {
		return 0
	}
	return int(v.Num)
}

// takeUsage takes in the usage that an event of a stream tells. Most tell none:
// a search for the name is a tenth of the cost of looking for the member.
func (c *collector) takeUsage(event gjson.Result) {
	if !strings.Contains(event.Raw, `"usage"`) {
		return
	}
	if u := readUsage(event.Get("usage")); u != (Usage{}) {
		c.usage = u // the last one counts: some routers tell it as it grows
	}
}
