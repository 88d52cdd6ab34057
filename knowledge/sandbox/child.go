package sandbox

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/backstory-proxy/backstory/knowledge/extract"
)

// Child is all that a child does: it limits itself, reads a file from in,
// writes its text to out, and what came of it to say. An error means that it
// was not started by a Reader.
func Child(in io.Reader, out, say io.Writer) error {
	buffered := bufio.NewReader(in)
	line, err := buffered.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("%s is started by the proxy only: %w", Argument, err)
	}
	var t task
	if err := json.Unmarshal(line, &t); err != nil {
		return fmt.Errorf("%s is started by the proxy only: %w", Argument, err)
	}
	if err := limit(t.Memory, t.Seconds); err != nil {
		return err
	}
	content := make([]byte, t.Size)
	if _, err := io.ReadFull(buffered, content); err != nil {
		return fmt.Errorf("read the file: %w", err)
	}
	w := bufio.NewWriterSize(out, 64<<10)
	info, err := extract.Read(context.Background(), t.Name, content, func(b extract.Block) error { return writeBlock(w, b) })
	if err == nil {
		err = w.Flush()
	}
	r := result{Info: info}
	var told *extract.Error
	switch {
	case errors.As(err, &told):
		r.Error, r.Unsupported = told.Message, told.Unsupported
	case err != nil:
		return err
	}
	return json.NewEncoder(say).Encode(r)
}
