package gateway

import (
	"fmt"
	"path"
)

// ContextConfig says how much goes into a prompt. All sizes are in tokens.
type ContextConfig struct {
	// The most that is added to a request. Default: 8000.
	MaxAddedTokens int `json:"max_added_tokens,omitempty"`
	// The most of it that chunks of files take. Default: 2000.
	MaxFileTokens int `json:"max_file_tokens,omitempty"`
	// The room left for the answer where a request names none. Default: 1024.
	Reserve int `json:"reserve,omitempty"`
	// The context length of models for which neither the router nor Models
	// gives one. Default: 8192.
	DefaultLength int `json:"default_length,omitempty"`
	// Whether older messages of a session are left out even where the user
	// message is about them. Default: false.
	DisableRecall bool `json:"disable_recall,omitempty"`
	// Context lengths by model name; * stands for anything but a slash.
	// They come before what the router says.
	Models map[string]int `json:"models,omitempty"`
}

func (c *ContextConfig) setDefaults() {
	setDefault(&c.MaxAddedTokens, 8000)
	setDefault(&c.MaxFileTokens, 2000)
	setDefault(&c.Reserve, 1024)
	setDefault(&c.DefaultLength, 8192)
}

func setDefault(n *int, to int) {
	if *n == 0 {
		*n = to
	}
}

func (c *ContextConfig) validate() error {
	for name, n := range map[string]int{
		"max_added_tokens": c.MaxAddedTokens, "max_file_tokens": c.MaxFileTokens,
		"reserve": c.Reserve, "default_length": c.DefaultLength,
	} {
		if n < 0 {
			return fmt.Errorf("context: %s must not be negative", name)
		}
	}
	for pattern, n := range c.Models {
		if _, err := path.Match(pattern, ""); err != nil {
			return fmt.Errorf("context: model pattern %q: %w", pattern, err)
		}
		if n < 1 {
			return fmt.Errorf("context: the length of model %q must be at least 1", pattern)
		}
	}
	return nil
}

// lengthOf is the configured context length of a model: that of the longest
// pattern which it matches; 0 where there is none.
func (c *ContextConfig) lengthOf(model string) int {
	best, length := "", 0
	for pattern, n := range c.Models {
		if ok, _ := path.Match(pattern, model); ok && (length == 0 || len(pattern) > len(best)) {
			best, length = pattern, n
		}
	}
	return length
}
