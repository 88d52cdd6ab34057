package extract

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"
)

// readJSON reads JSON and JSON lines. Each value is a line with the path that
// leads to it; the elements of a list, and the lines of JSON lines, are kept
// apart. What only looks like JSON is read as lines.
func readJSON(o *output, name string, content []byte, encoding string) error {
	content, err := io.ReadAll(decoder(encoding, content))
	if err != nil {
		return err
	}
	if extension(name) == "ipynb" {
		if err := readNotebook(o, content); !errors.Is(err, errNoNotebook) {
			return err
		}
	}
	if !json.Valid(content) && !validLines(content) {
		o.info = Info{Type: text.name, Reader: text.reader}
		return emitText(o, Lines, bytes.NewReader(content))
	}
	d := json.NewDecoder(bytes.NewReader(content))
	d.UseNumber()
	w := &jsonWriter{o: o, d: d}
	for {
		w.fresh = true
		if err := w.value("", 0); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// validLines reports whether each line is JSON.
func validLines(content []byte) bool {
	for line := range bytes.Lines(content) {
		if line = bytes.TrimSpace(line); len(line) > 0 && !json.Valid(line) {
			return false
		}
	}
	return true
}

type jsonWriter struct {
	o     *output
	d     *json.Decoder
	fresh bool  // the next line begins a record
	paths int64 // bytes of them so far
}

// maxNesting is how deep values may stand in each other.
const maxNesting = 1000

var errNesting = unreadable("the file is nested deeper than %d levels", maxNesting)

// value reads a value, which stands at a path.
func (w *jsonWriter) value(path string, depth int) error {
	t, err := w.d.Token()
	if err != nil {
		return err
	}
	return w.token(t, path, depth)
}

func (w *jsonWriter) token(t json.Token, path string, depth int) error {
	if depth > maxNesting {
		return errNesting
	}
	switch t := t.(type) {
	case json.Delim:
		for w.d.More() {
			next := path
			if t == '{' {
				key, err := w.d.Token()
				if err != nil {
					return err
				}
				next = join(path, key.(string))
			} else if depth < 3 {
				w.fresh = true
			}
			if err := w.value(next, depth+1); err != nil {
				return err
			}
		}
		_, err := w.d.Token() // the closing bracket
		return err
	case string:
		return w.line(path, t)
	case json.Number:
		return w.line(path, t.String())
	case bool:
		return w.line(path, strconv.FormatBool(t))
	}
	return nil // null
}

// join adds a key to a path.
func join(path, key string) string {
	if path != "" {
		key = path + "." + key
	}
	if len(key) > maxPath {
		key = strings.ToValidUTF8(key[len(key)-maxPath:], "")
	}
	return key
}

const (
	// maxPath is where a path is cut: what stands at its end tells most, bytes.
	maxPath = 200
	// pathShare is how many bytes of paths are emitted for each byte of the file, and
	// pathRoom how many in any case: a long path ahead of each of many short values
	// would make a text a hundred times as long as the file. Records of a few levels
	// take 1 to 2.
	pathShare = 4
	pathRoom  = 64 << 10
)

func (w *jsonWriter) line(path, value string) error {
	if w.paths+int64(len(path)) > pathRoom+pathShare*w.d.InputOffset() {
		path = ""
	}
	if path != "" {
		w.paths += int64(len(path))
		value = path + ": " + value
	}
	level := 0
	if w.fresh {
		level = 1
	}
	w.fresh = false
	return w.o.add(Row, level, value)
}

var errNoNotebook = errors.New("no notebook")

// readNotebook reads a Jupyter notebook: its text and code, and what the code
// printed.
func readNotebook(o *output, content []byte) error {
	var book struct {
		Cells []struct {
			Type    string `json:"cell_type"`
			Source  lines  `json:"source"`
			Outputs []struct {
				Text lines            `json:"text"`
				Data map[string]lines `json:"data"`
			} `json:"outputs"`
		} `json:"cells"`
	}
	if err := json.Unmarshal(content, &book); err != nil || len(book.Cells) == 0 {
		return errNoNotebook
	}
	o.info.Type = "notebook"
	for _, cell := range book.Cells {
		kind := Prose
		if cell.Type == "code" {
			kind = Lines
		}
		if err := o.add(kind, 0, string(cell.Source)+"\n\n"); err != nil {
			return err
		}
		for _, out := range cell.Outputs {
			if err := o.add(Lines, 0, string(out.Text+out.Data["text/plain"])+"\n\n"); err != nil {
				return err
			}
		}
	}
	return nil
}

// lines is text in a notebook: a string, or a list of lines. What is neither
// is nothing.
type lines string

func (l *lines) UnmarshalJSON(b []byte) error {
	var list []string
	var one string
	if json.Unmarshal(b, &list) == nil {
		*l = lines(strings.Join(list, ""))
	} else if json.Unmarshal(b, &one) == nil {
		*l = lines(one)
	}
	return nil
}
