// Package respond writes JSON replies.
package respond

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
)

// JSON answers 200 with a JSON value.
func JSON(w http.ResponseWriter, v any) error {
	var body bytes.Buffer
	e := json.NewEncoder(&body)
	e.SetEscapeHTML(false) // it is no HTML, and people read it
	if err := e.Encode(v); err != nil {
		return err
	}
	Body(w, http.StatusOK, body.Bytes())
	return nil
}

// Body answers with JSON as it is. The client may be gone: that is nobody's
// error.
func Body(w http.ResponseWriter, status int, body []byte) {
	header := w.Header()
	header.Set("Content-Type", "application/json")
	header.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body)
}
