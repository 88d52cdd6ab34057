package demo

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/tidwall/gjson"
)

// apiError is an error in the OpenAI format, with its HTTP status.
type apiError struct {
	status  int
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    *string `json:"code"`
}

// errorBody is the form in which an apiError is sent, as a reply or an event.
type errorBody struct {
	Error *apiError `json:"error"`
}

func (e *apiError) write(w http.ResponseWriter) {
	if e.status == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "1")
	}
	writeJSON(w, e.status, errorBody{e})
}

func errParam(param, format string, args ...any) *apiError {
	return &apiError{
		status: http.StatusBadRequest, Type: "invalid_request_error", Param: &param,
		Message: fmt.Sprintf(format, args...),
	}
}

func errKey(message string) *apiError {
	return &apiError{
		status: http.StatusUnauthorized, Type: "invalid_request_error", Code: new("invalid_api_key"),
		Message: message,
	}
}

func errContext(limit, tokens int) *apiError {
	e := errParam("messages",
		"This model's maximum context length is %d tokens. However, your messages resulted in %d tokens.", limit, tokens)
	e.Code = new("context_length_exceeded")
	return e
}

func errModel(id string) *apiError {
	return &apiError{
		status: http.StatusNotFound, Type: "invalid_request_error", Param: new("model"), Code: new("model_not_found"),
		Message: fmt.Sprintf("The model '%s' does not exist.", id),
	}
}

func errUnknownPath(r *http.Request) *apiError {
	return &apiError{
		status: http.StatusNotFound, Type: "invalid_request_error", Code: new("unknown_url"),
		Message: fmt.Sprintf("Unknown request URL: %s %s.", r.Method, r.URL.Path),
	}
}

func errMethod(r *http.Request) *apiError {
	return &apiError{
		status: http.StatusMethodNotAllowed, Type: "invalid_request_error", Code: new("method_not_supported"),
		Message: fmt.Sprintf("%s is not allowed on %s.", r.Method, r.URL.Path),
	}
}

// errDirected is the error that the directive demo:error asks for.
func errDirected(status int) *apiError {
	e := &apiError{
		status: status, Type: "invalid_request_error",
		Message: fmt.Sprintf("The demo router was asked to answer %d.", status),
	}
	switch {
	case status == http.StatusUnauthorized:
		e.Code = new("invalid_api_key")
	case status == http.StatusPaymentRequired:
		e.Type, e.Code = "insufficient_quota", new("insufficient_quota")
	case status == http.StatusTooManyRequests:
		e.Type, e.Code = "requests", new("rate_limit_exceeded")
	case status >= http.StatusInternalServerError:
		e.Type = "server_error"
	}
	return e
}

// readJSON reads a request's body, which has to be a JSON object.
func readJSON(w http.ResponseWriter, r *http.Request) ([]byte, *apiError) {
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		return nil, &apiError{
			status: http.StatusRequestEntityTooLarge, Type: "invalid_request_error",
			Message: fmt.Sprintf("The request is larger than %d bytes.", tooLarge.Limit),
		}
	}
	if err != nil || !gjson.ValidBytes(raw) || !gjson.ParseBytes(raw).IsObject() {
		return nil, &apiError{
			status: http.StatusBadRequest, Type: "invalid_request_error",
			Message: "The body of the request could not be read as a JSON object.",
		}
	}
	return raw, nil
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(marshal(v)) // the client may be gone; there is nobody to tell
}

// marshal encodes one of this package's own types, which can't fail.
func marshal(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("demo: " + err.Error())
	}
	return b
}
