package gateway

import (
	"errors"
	"fmt"
	"net/http"
	"path"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/backstory-proxy/backstory/openai"
)

// Plan is what a tenant may do.
type Plan struct {
	// RequestsPerMinute is the most requests in any 60 seconds.
	RequestsPerMinute int
	// TokensPerMonth is the most tokens in a calendar month of UTC, as the router counts them.
	// Default: no bound, and then they aren't counted.
	TokensPerMonth int64
	// Files is the most files that a tenant may have. Default: no bound.
	Files int
	// FileSize is the largest file, in bytes. Default: Options.MaxFile, which bounds it too.
	FileSize int64
	// Storage is the most bytes that a tenant's files may take together: the
	// originals, and for each chunk 2 KiB and its vector. Default: no bound.
	Storage int64
	// SessionsTTL is how long a session is kept after its last exchange. Default: for good.
	SessionsTTL time.Duration
	// Models are those that may be called; * stands for anything but a slash.
	// Default: all.
	Models []string
}

// defaultPlans are those of the service's specification.
func defaultPlans() map[string]Plan {
	return map[string]Plan{
		"free":       {RequestsPerMinute: 10},
		"pro":        {RequestsPerMinute: 100},
		"premium":    {RequestsPerMinute: 500},
		"enterprise": {RequestsPerMinute: 1000},
	}
}

func (p *Plan) validate() error {
	if p.RequestsPerMinute < 1 {
		return errors.New("requests_per_minute must be at least 1")
	}
	for name, n := range map[string]int64{
		"tokens_per_month": p.TokensPerMonth, "files": int64(p.Files), "file_size": p.FileSize,
		"storage": p.Storage, "sessions_ttl": int64(p.SessionsTTL),
	} {
		if n < 0 {
			return fmt.Errorf("%s must not be negative", name)
		}
	}
	for _, pattern := range p.Models {
		if _, err := path.Match(pattern, ""); err != nil {
			return fmt.Errorf("model pattern %q: %w", pattern, err)
		}
	}
	return nil
}

// checkModels refuses a request that names a model which the plan doesn't have,
// be it one that the router may fall back to.
func (p *Plan) checkModels(model string, others []string) error {
	if len(p.Models) == 0 {
		return nil
	}
	for _, other := range others {
		if err := p.checkModel(other); err != nil {
			return err
		}
	}
	return p.checkModel(model)
}

// checkModel refuses a model that the plan doesn't have, as OpenAI refuses one
// that a project has no access to.
func (p *Plan) checkModel(model string) error {
	for _, pattern := range p.Models {
		if ok, _ := path.Match(pattern, model); ok {
			return nil
		}
	}
	return &openai.Error{
		Status: http.StatusNotFound, Type: openai.TypeInvalidRequest, Param: "model", Code: openai.CodeModelNotFound,
		Message: fmt.Sprintf("The model `%s` does not exist or your plan does not include it.", model),
	}
}

// sizeText is a size for people.
func sizeText(n int64) string { return humanize.Bytes(uint64(max(n, 0))) }
