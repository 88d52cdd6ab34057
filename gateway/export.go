package gateway

import (
	"bytes"
	"encoding/json"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/backstory-proxy/backstory/openai"
	"github.com/backstory-proxy/backstory/store"
)

// LinesType is the media type of an export: JSON Lines.
const LinesType = "application/jsonl"

// wantsLines reports whether a request asks for JSON Lines.
func wantsLines(r *http.Request) bool {
	for accept := range strings.SplitSeq(strings.Join(r.Header.Values("Accept"), ","), ",") {
		if isLines(accept) {
			return true
		}
	}
	return false
}

// isLines reports whether a media type is that of JSON Lines, by any of its
// names.
func isLines(mediaType string) bool {
	name, _, err := mime.ParseMediaType(mediaType)
	return err == nil && (name == LinesType || name == "application/x-ndjson" || name == "application/x-jsonlines")
}

// exportMessages answers with all messages of a session, oldest first, one to a
// line, as an import takes them. Not much of the session is in memory at once.
func (sa *SessionsAPI) exportMessages(w http.ResponseWriter, r *http.Request, scope store.Scope, id string) error {
	for _, name := range []string{"limit", "after", "order"} {
		if r.URL.Query().Has(name) {
			return openai.Invalid(name, "'%s' is for pages. As %s a session comes whole, oldest message first.", name, LinesType)
		}
	}
	begun := false
	begin := func() {
		if !begun {
			begun = true
			w.Header().Set("Content-Type", LinesType)
			w.WriteHeader(http.StatusOK)
		}
	}
	var lines bytes.Buffer
	err := store.EachExchange(r.Context(), sa.shared, scope, id, func(list []store.Exchange) error {
		begin()
		for i := range list {
			lines.Reset()
			if err := appendLines(&lines, &list[i]); err != nil {
				return err
			}
			if _, err := w.Write(lines.Bytes()); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil && begun {
		if r.Context().Err() == nil {
			sa.logger.Error("an export broke off", zap.Error(err))
		}
		panic(http.ErrAbortHandler) // or what there is would pass for the whole
	}
	if err != nil {
		return noSuchSession(err)
	}
	begin()
	return nil
}

// appendLines writes the messages of an exchange.
func appendLines(to *bytes.Buffer, e *store.Exchange) error {
	for i := range e.Messages {
		line := openai.Lead(e.Messages[i].JSON, `"created_at":`+seconds(e.SaidAt(i)), "created_at")
		// A message may have come in several lines.
		if err := json.Compact(to, line); err != nil {
			return err
		}
		to.WriteByte('\n')
	}
	return nil
}

// seconds writes a time as Unix seconds, to the millisecond.
func seconds(t time.Time) string {
	return strconv.FormatFloat(float64(t.UnixMilli())/1000, 'f', -1, 64)
}
