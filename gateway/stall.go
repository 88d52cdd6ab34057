package gateway

import (
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// writePause is how long a client may take nothing of a reply that is there
	// for it. How long the model pauses doesn't matter: nothing is there then.
	writePause = time.Minute
	// writePiece is how much is written at once: a client that is slow, but takes
	// so much in a writePause, gets its reply.
	writePiece = 64 << 10
)

// stall ends a reply that its client doesn't take: what is kept for it, and its
// place among the requests under way, would else be lost for as long as the client
// likes. One timer per reply looks after it, so that a write costs next to nothing
// more.
type stall struct {
	writing atomic.Int64 // since when, in Unix nanoseconds; 0: nothing is being written

	mu      sync.Mutex
	control *http.ResponseController
	pause   time.Duration
	timer   *time.Timer // nil: nobody looks any more
}

// watch begins to look after the reply that w writes.
func (s *stall) watch(w http.ResponseWriter, pause time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.control, s.pause = http.NewResponseController(w), pause
	s.timer = time.AfterFunc(pause, s.look)
}

// look ends the write under way, where it takes too long.
func (s *stall) look() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timer == nil {
		return
	}
	if since := s.writing.Load(); since != 0 && time.Since(time.Unix(0, since)) >= s.pause {
		_ = s.control.SetWriteDeadline(time.Now())
	}
	s.timer.Reset(s.pause)
}

// begin and end are called around each write.
func (s *stall) begin() { s.writing.Store(time.Now().UnixNano()) }
func (s *stall) end()   { s.writing.Store(0) }

// stop ends the looking after, before the server takes the connection back.
func (s *stall) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.timer.Stop()
	s.timer = nil
}
