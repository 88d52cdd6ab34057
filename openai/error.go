package openai

import (
	"fmt"
	"net/http"
)

// The error types and codes of the OpenAI API that we send.
const (
	TypeInvalidRequest = "invalid_request_error"
	TypeRequests       = "requests"
	TypeServer         = "server_error"

	CodeInvalidAPIKey     = "invalid_api_key"
	CodeRateLimitExceeded = "rate_limit_exceeded"
	CodeInsufficientQuota = "insufficient_quota" // a type too
	CodeModelNotFound     = "model_not_found"
	// CodeStoreUnavailable and CodeStoreFull are ours.
	CodeStoreUnavailable = "store_unavailable"
	CodeStoreFull        = "store_full"
)

// Error is an error as the OpenAI API reports it.
type Error struct {
	Status  int    // HTTP status
	Message string // for the developer of the calling app
	Type    string
	Param   string // the offending parameter; empty: null
	Code    string // empty: null
	// Final says that the same request would fail again, where a client might
	// think otherwise: the SDKs send a 409, a 429 and a 5xx a second time.
	Final bool
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// JSON is the body of the reply: an object with the four keys that the OpenAI
// SDKs read, param and code null where they are empty.
func (e *Error) JSON() []byte {
	b := []byte(`{"error":{"message":`)
	b = appendString(b, e.Message)
	b = append(b, `,"type":`...)
	b = appendString(b, e.Type)
	b = append(b, `,"param":`...)
	b = appendStringOrNull(b, e.Param)
	b = append(b, `,"code":`...)
	b = appendStringOrNull(b, e.Code)
	return append(b, `}}`...)
}

func appendStringOrNull(b []byte, s string) []byte {
	if s == "" {
		return append(b, "null"...)
	}
	return appendString(b, s)
}

// Invalid is a 400 that names a parameter.
func Invalid(param, format string, args ...any) *Error {
	return &Error{
		Status:  http.StatusBadRequest,
		Message: fmt.Sprintf(format, args...),
		Type:    TypeInvalidRequest,
		Param:   param,
	}
}

// StatusError is an error of the given status with the type that goes with it.
func StatusError(status int, format string, args ...any) *Error {
	e := &Error{Status: status, Message: fmt.Sprintf(format, args...), Type: TypeInvalidRequest}
	e.Final = status == http.StatusConflict || status == http.StatusNotImplemented
	switch {
	case status == http.StatusUnauthorized:
		e.Code = CodeInvalidAPIKey
	case status == http.StatusTooManyRequests:
		e.Type, e.Code = TypeRequests, CodeRateLimitExceeded
	case status >= 500:
		e.Type = TypeServer
	}
	return e
}
