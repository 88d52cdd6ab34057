package demo

// How OpenAI counts a prompt: so many tokens around each message and around
// the name in it, and so many that begin the reply.
const (
	perMessage = 3
	perName    = 1
	perReply   = 3
	// perPart is the price of an image at low detail; every part that isn't
	// text is counted as one.
	perPart = 85
)

// usage is a usage object.
type usage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Total      int `json:"total_tokens"`
}

func (rt *Router) promptTokens(c *chat) int {
	n := perReply
	for _, m := range c.messages {
		n += perMessage + rt.count(m.role) + rt.count(m.text) + m.others*perPart
		if m.name != "" {
			n += perName + rt.count(m.name)
		}
		for _, call := range m.calls {
			n += rt.count(call.Get("function.name").String()) + rt.count(call.Get("function.arguments").String())
		}
	}
	for _, tool := range c.tools {
		n += rt.count(tool.Raw)
	}
	return n
}

func (rt *Router) used(c *chat, prompt int, r reply) usage {
	n := rt.count(r.text)
	for _, call := range r.calls {
		n += rt.count(call.Function.Name) + rt.count(call.Function.Arguments)
	}
	return usage{Prompt: prompt, Completion: n * c.n, Total: prompt + n*c.n}
}
