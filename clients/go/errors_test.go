package clients_test

import (
	"errors"
	"os"
	"strconv"
	"sync"
	"testing"

	"github.com/openai/openai-go/v3"
)

func TestBadKeys(t *testing.T) {
	for name, tc := range map[string]struct {
		client  openai.Client
		message string
	}{
		"of the service": {connect("not-a-key", os.Getenv("ROUTER_KEY")), ""},
		"of the router":  {connect(os.Getenv("SERVICE_KEY"), "sk-invalid"), "Incorrect API key provided: sk-invalid"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := tc.client.Chat.Completions.New(t.Context(), says(openai.UserMessage("Hello there")))
			apiErr := wantError(t, err, 401)
			wantText(t, apiErr.Message, tc.message)
			if apiErr.Code != "invalid_api_key" {
				t.Errorf("code is %q", apiErr.Code)
			}
		})
	}
}

func TestBadRequestsNameTheParameter(t *testing.T) {
	hot := says(openai.UserMessage("Hello there"))
	hot.Temperature = openai.Float(3)
	for param, params := range map[string]openai.ChatCompletionNewParams{
		"temperature": hot,
		"messages":    {Model: model, Messages: []openai.ChatCompletionMessageParamUnion{}},
	} {
		t.Run(param, func(t *testing.T) {
			client := good()
			_, err := client.Chat.Completions.New(t.Context(), params)
			if got := wantError(t, err, 400).Param; got != param {
				t.Errorf("param is %q", got)
			}
		})
	}
}

func TestUnknownFileIsNotFound(t *testing.T) {
	client := good()
	_, err := client.Files.Get(t.Context(), "file-unknown")
	wantError(t, err, 404)
}

// TestFreePlanAllowsTenRequestsAMinute is the one test that the free plan's key
// is for: it has to be unused in the minute before.
func TestFreePlanAllowsTenRequestsAMinute(t *testing.T) {
	client := connect(os.Getenv("FREE_KEY"), os.Getenv("ROUTER_KEY"))
	errs := make([]error, 11)
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() {
			_, errs[i] = client.Chat.Completions.New(t.Context(), says(openai.UserMessage("Hello there")))
		})
	}
	all.Wait()
	var refused []error
	for _, err := range errs {
		if err != nil {
			refused = append(refused, err)
		}
	}
	if len(refused) != 1 {
		t.Fatalf("%d of %d were refused: %v", len(refused), len(errs), errors.Join(refused...))
	}
	apiErr := wantError(t, refused[0], 429)
	if after, err := strconv.Atoi(apiErr.Response.Header.Get("Retry-After")); err != nil || after < 1 || after > 60 {
		t.Errorf("Retry-After: %d, %v", after, err)
	}
	if apiErr.Code != "rate_limit_exceeded" {
		t.Errorf("code is %q", apiErr.Code)
	}
}
