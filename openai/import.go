package openai

import (
	"bytes"
	"math"
	"time"

	"github.com/tidwall/gjson"
)

// Imported is a message of an import.
type Imported struct {
	Message
	Created time.Time // when it was said; zero where the import doesn't tell
}

// MessageObject is what the object member of a session's messages says, as they
// are listed.
const MessageObject = "session.message"

// ParseImport reads the body of an import, {"messages": [...]}: messages as in
// a chat request, each with an optional created_at, which is not part of the
// message. Messages may also be such as a session lists them; what the list has
// added is taken off. The error is one for the client.
func ParseImport(body []byte, now time.Time) ([]Imported, error) {
	if err := CheckJSON(body); err != nil {
		return nil, err
	}
	root := gjson.Parse(unsafeString(body))
	if !root.IsObject() {
		return nil, Invalid("", "The request body must be a JSON object.")
	}
	var list gjson.Result
	var err error
	root.ForEach(func(key, v gjson.Result) bool {
		switch name := key.String(); {
		case name != "messages":
			err = Invalid(name, "Unknown parameter: '%s'. An import has 'messages' only.", name)
		case list.Exists():
			err = Invalid(name, "The request body names '%s' more than once.", name)
		}
		list = v
		return err == nil
	})
	if err != nil {
		return nil, err
	}
	if !list.Exists() {
		return nil, Invalid("messages", "Missing required parameter: 'messages'.")
	}
	messages, err := readMessages(body, list)
	if err != nil {
		return nil, err
	}
	imported := make([]Imported, len(messages))
	for i := range messages {
		if imported[i], err = readImported(&messages[i], i, now); err != nil {
			return nil, err
		}
	}
	return imported, nil
}

// ParseImportLines reads an import that has one message a line (JSON Lines).
// The first is messages[0].
func ParseImportLines(body []byte, now time.Time) ([]Imported, error) {
	whole := append(make([]byte, 0, len(body)+16), `{"messages":[`...)
	n := 0
	for line := range bytes.Lines(body) {
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		// Alone, or two lines that are nothing could make something together.
		if !wellFormed(line) {
			return nil, Invalid(elementName(n, ""), "We could not parse the JSON of '%s': each line must be one JSON object.", elementName(n, ""))
		}
		if n++; n > 1 {
			whole = append(whole, ',')
		}
		whole = append(whole, line...)
	}
	return ParseImport(append(whole, `]}`...), now)
}

// readImported takes from a message what isn't part of it.
func readImported(m *Message, i int, now time.Time) (im Imported, err error) {
	var created gjson.Result
	listed := false
	m.Each(func(name string, v gjson.Result) {
		switch name {
		case "created_at":
			if created.Exists() {
				err = Invalid(elementName(i, ".created_at"), "'%s' is given more than once.", elementName(i, ".created_at"))
			}
			created = v
		case "object":
			listed = v.Str == MessageObject
		}
	})
	if err != nil {
		return im, err
	}
	if created.Exists() {
		if im.Created, err = readTime(elementName(i, ".created_at"), created, now); err != nil {
			return im, err
		}
	}
	im.Message = m.without(func(name string) bool {
		return name == "created_at" || listed && (name == "object" || name == "id")
	})
	return im, nil
}

// farFuture is how far a clock may be ahead of ours.
const farFuture = 24 * time.Hour

// readTime reads Unix seconds.
func readTime(name string, v gjson.Result, now time.Time) (time.Time, error) {
	if v.Type != gjson.Number {
		return time.Time{}, Invalid(name, "Invalid type for '%s': expected a number, the Unix time in seconds.", name)
	}
	if n := v.Num; !(n >= 0) || n > float64(now.Add(farFuture).Unix()) {
		return time.Time{}, Invalid(name, "Invalid value for '%s': expected a Unix time in seconds that isn't in the future.", name)
	}
	return time.UnixMilli(int64(math.Round(v.Num * 1000))).UTC(), nil
}

// without returns the message less some members: the same one where it has
// none of them.
func (m *Message) without(dropped func(name string) bool) Message {
	found := false
	root := gjson.Parse(unsafeString(m.JSON))
	root.ForEach(func(key, _ gjson.Result) bool {
		found = dropped(key.String())
		return !found
	})
	if !found {
		return *m
	}
	return ParseMessage(less(root, func(name string, _ gjson.Result) bool { return dropped(name) }))
}
