package openai

import (
	"bytes"
	"unsafe"

	"github.com/tidwall/gjson"
)

// maxEvent bounds the bytes of one event that are kept for reading it. A larger
// event is forwarded all the same, but its reply can't be kept.
const maxEvent = 16 << 20

// Stream reads an event stream on its way to the client: every byte is handed
// on as soon as it can be, one field is added to the first chunk, and the end
// is held until the owner has seen the whole reply.
//
// The first chunk is the first event whose data is an object with choices. Its
// data waits until the event is complete, since only then it is known to be
// one; afterwards nothing waits but a line that may yet become "data: [DONE]".
type Stream struct {
	// Forward sends bytes to the client. They are good until it returns.
	Forward func([]byte) error
	// Metadata is the JSON value for the first chunk's "_metadata"; empty for
	// none.
	Metadata []byte
	// HideUsage keeps a chunk that holds nothing but the usage from the
	// client, which didn't ask for one. Each event then waits until it is whole.
	HideUsage bool
	// End is called once, when [DONE] was read and everything ahead of it
	// was forwarded. The lines that it returns go ahead of [DONE].
	End func(*Reply) []byte

	collector collector
	out       []byte // cleared for the client, not yet forwarded
	held      []byte // not yet cleared
	started   bool   // a line was read: no byte order mark may follow
	lineAt    int    // the offset in held at which the line under way begins
	line      []byte // the line under way, without its end
	data      []byte // of the event under way, its lines joined
	dataLines int    // how many there are
	brace     int    // the offset in held behind the data's first '{'; 0 for none
	first     bool   // the first chunk is behind us
	ended     bool   // [DONE] was read
	begun     bool   // the event under way has a field
	hidden    bool   // the event that just ended is kept from the client
	afterCR   bool   // the last byte was a CR, whose LF may follow
	oversize  bool   // the event under way is too large to be read
	blank     bool   // of an oversize event: no byte of the line under way was seen
}

// Write takes the next bytes of the stream, split anywhere.
func (s *Stream) Write(p []byte) error {
	for len(p) > 0 && !s.ended {
		// Look for CRs up to the next LF only, or streams with the one
		// but not the other would be searched again for every line.
		lines := p[:pieceLen(p, '\n')]
		for len(lines) > 0 && !s.ended {
			n := pieceLen(lines, '\r')
			if err := s.take(lines[:n]); err != nil {
				return err
			}
			lines, p = lines[n:], p[n:]
		}
	}
	s.out = append(s.out, p...) // behind the end nothing is ours to read
	return s.flush()
}

// pieceLen is the length of p up to and with the first end, or all of it.
func pieceLen(p []byte, end byte) int {
	if i := bytes.IndexByte(p, end); i >= 0 {
		return i + 1
	}
	return len(p)
}

// Close ends the stream where the router ended it, and hands on what was held.
func (s *Stream) Close() error {
	var err error
	if len(s.line) > 0 {
		err = s.endLine()
	}
	// An event without its empty line counts where it isn't torn.
	if !s.ended && wellFormed(s.data) {
		s.endEvent()
		s.hide(len(s.held))
	}
	s.clear()
	if e := s.flush(); err == nil {
		err = e
	}
	return err
}

// Ended reports whether [DONE] was read.
func (s *Stream) Ended() bool { return s.ended }

// Reply is what the stream held so far.
func (s *Stream) Reply() *Reply { return s.collector.reply() }

// take takes a piece of a line, with the byte that ends it, if it is there.
func (s *Stream) take(p []byte) error {
	s.held = append(s.held, p...)
	last := p[len(p)-1]
	if s.afterCR && p[0] == '\n' { // the rest of a CRLF
		s.afterCR = false
		if s.hidden { // with the rest of its CRLF
			s.held = s.held[:len(s.held)-1]
		}
		s.settle()
		return nil
	}
	s.afterCR = last == '\r'
	if last == '\r' || last == '\n' {
		s.keep(p[:len(p)-1])
		return s.endLine()
	}
	s.keep(p)
	if s.oversize || s.first && !s.HideUsage && !mayBeDone(s.line) {
		s.clear()
	}
	return nil
}

// keep adds to the line under way, within bounds.
func (s *Stream) keep(p []byte) {
	if !s.oversize && len(s.line)+len(s.data)+len(p) > maxEvent {
		s.oversize, s.blank = true, len(s.line) == 0
		s.collector.giveUp()
		s.line, s.data, s.dataLines, s.brace, s.begun = nil, nil, 0, 0, false
	}
	if s.oversize {
		s.blank = s.blank && len(p) == 0
		return
	}
	s.line = append(s.line, p...)
}

// endLine reads the line that just ended.
func (s *Stream) endLine() error {
	line, n := s.line, len(s.line)
	s.line, s.hidden = s.line[:0], false
	if !s.started {
		line, s.started = bytes.TrimPrefix(line, []byte("\ufeff")), true
	}
	switch {
	case s.oversize:
		s.oversize = !s.blank // until the empty line that ends the event
		s.blank = true
	case len(line) == 0:
		s.endEvent()
		s.hide(len(s.held))
	default:
		value, ok := dataOf(line)
		// No event of JSON has such a line. Where it stands behind other
		// data, the router forgot the empty line.
		if ok && bytes.HasPrefix(value, []byte(done)) {
			return s.end()
		}
		if ok {
			s.addData(value, s.lineAt+n-len(value))
		}
		s.begun = s.begun || line[0] != ':'
	}
	s.settle()
	return nil
}

// settle decides, at the end of a line, what may go to the client: everything,
// unless the event under way may be the first chunk, or one to be hidden.
func (s *Stream) settle() {
	if (s.first || s.dataLines == 0) && !(s.HideUsage && s.begun) {
		s.clear()
	}
	s.lineAt = len(s.held)
}

// addData takes the value of a data line, which stands at the given offset in
// held.
func (s *Stream) addData(value []byte, at int) {
	if s.dataLines > 0 {
		s.data = append(s.data, '\n')
	}
	if i := bytes.IndexByte(value, '{'); i >= 0 && s.brace == 0 {
		s.brace = at + i + 1
	}
	s.data = append(s.data, value...)
	s.dataLines++
}

// endEvent reads the event that just ended.
func (s *Stream) endEvent() {
	s.begun = false
	if s.dataLines == 0 {
		return
	}
	if tooDeep(s.data) {
		s.collector.giveUp()
	} else if event := gjson.Parse(unsafeString(s.data)); event.IsObject() {
		choices := event.Get("choices")
		s.hidden = s.HideUsage && isUsageChunk(event, choices)
		if !s.hidden && !s.first && choices.IsArray() {
			s.addMetadata()
		}
		s.collector.add(event, choices) // copies what it keeps
	}
	s.data, s.dataLines, s.brace = s.data[:0], 0, 0
}

// isUsageChunk tells the chunk that OpenAI sends where include_usage was asked.
func isUsageChunk(event, choices gjson.Result) bool {
	return isEmptyArray(choices) && event.Get("usage").IsObject() && !truthy(event.Get("error"))
}

// hide takes the event that just ended, of n bytes, out of what is held, if it
// is to be hidden; comments in it stay.
func (s *Stream) hide(n int) {
	if !s.hidden {
		return
	}
	kept := s.held[:0]
	for line := range bytes.Lines(s.held[:n]) {
		if line[0] == ':' {
			kept = append(kept, line...)
		}
	}
	s.lineAt -= n - len(kept)
	s.held = append(kept, s.held[n:]...)
}

func (s *Stream) addMetadata() {
	s.first = true
	if len(s.Metadata) == 0 {
		return
	}
	s.out = append(s.out, s.held[:s.brace]...)
	s.out = append(s.out, `"_metadata":`...)
	s.out = append(s.out, s.Metadata...)
	s.out = append(s.out, ',') // choices follows
	s.held = append(s.held[:0], s.held[s.brace:]...)
	s.lineAt -= s.brace
}

// end lets the owner see the reply, then hands on the line with [DONE].
func (s *Stream) end() error {
	s.ended = true
	s.endEvent()
	s.hide(s.lineAt)
	s.out = append(s.out, s.held[:s.lineAt]...)
	s.held = append(s.held[:0], s.held[s.lineAt:]...)
	if err := s.flush(); err != nil {
		return err
	}
	r := s.collector.reply()
	if r.Finish == "" {
		r.Finish = finishUnsaid
	}
	s.out = append(s.out, s.End(r)...)
	s.clear()
	return nil
}

// clear lets what was held go to the client.
func (s *Stream) clear() {
	s.out = append(s.out, s.held...)
	s.held, s.lineAt = s.held[:0], 0
}

func (s *Stream) flush() error {
	if len(s.out) == 0 {
		return nil
	}
	err := s.Forward(s.out)
	s.out = s.out[:0]
	return err
}

// done begins the data that ends a stream; the SDKs don't look at the rest.
const done = "[DONE]"

// dataOf returns the value of a data line.
func dataOf(line []byte) ([]byte, bool) {
	value, ok := bytes.CutPrefix(line, []byte("data"))
	if !ok || len(value) > 0 && value[0] != ':' {
		return nil, false
	}
	value = bytes.TrimPrefix(value, []byte(":"))
	return bytes.TrimPrefix(value, []byte(" ")), true
}

// mayBeDone reports whether a line that begins like this can end the stream.
func mayBeDone(line []byte) bool {
	return agree(line, "data: "+done) || agree(line, "data:"+done)
}

// agree reports whether a and b are the same as far as both go.
func agree(a []byte, b string) bool {
	n := min(len(a), len(b))
	return string(a[:n]) == b[:n]
}

// unsafeString is b as a string, for as long as b doesn't change.
func unsafeString(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
