package redis

// Event is something about the servers that the operator wants to know.
type Event struct {
	What What
	// Server is its address, where it is about one.
	Server string
	// Err is why, where What is Waiting.
	Err error
}

// What an Event is about.
type What int

const (
	// Waiting: the servers could not be reached when the store was opened, or
	// not used. They are tried again until they can be. It comes again when
	// the reason is another.
	Waiting What = iota
	// Reached: they can be used now.
	Reached
	// Hangs: a server doesn't answer. What needs it fails at once.
	Hangs
	// Answers: it does again.
	Answers
	// SearchBlocks: while the server searches, it answers nobody else, for
	// want of search-workers.
	SearchBlocks
)

// notify tells the operator.
func (o *Options) notify(e Event) {
	if o.Notify != nil {
		o.Notify(e)
	}
}
