package clients_test

import (
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

// docs: go
func connectWith(baseURL, routerKey, serviceKey string) openai.Client {
	return openai.NewClient(
		option.WithBaseURL(baseURL), // http://localhost:8080/api/v1
		option.WithAPIKey(routerKey),
		option.WithHeader("serviceKey", serviceKey),
	)
}

// end

// docs: go session
func inSession(id string) option.RequestOption { return option.WithJSONSet("sessionId", id) }

// end

// docs: go one key
func connectWithOneKey(baseURL, serviceKey string) openai.Client {
	return openai.NewClient(option.WithBaseURL(baseURL), option.WithAPIKey(serviceKey))
}

// end
