package store

import "time"

// Backlog is a store that knows whether its writes keep up.
type Backlog interface {
	// WriteBacklog is how long the oldest write that waits has waited; 0 when
	// none waits. It is asked with every request, and returns at once.
	WriteBacklog() time.Duration
}
