package store

import "context"

const (
	// walkBytes is about how much EachExchange reads at once: exchanges may
	// hold a word or an album of photos.
	walkBytes = 4 << 20
	walkMost  = 256 // exchanges
	walkFirst = 16
)

// EachExchange hands a session's exchanges to see, oldest first, page by page,
// so that not much of the session is in memory at once. ErrNotFound where there
// is no such session, at the start or any more.
func EachExchange(ctx context.Context, s Sessions, scope Scope, session string, see func([]Exchange) error) error {
	after, limit := int64(0), walkFirst
	for {
		list, err := s.Exchanges(ctx, scope, session, after, limit, Ascending)
		if err != nil || len(list) == 0 {
			return err
		}
		if err := see(list); err != nil {
			return err
		}
		if len(list) < limit {
			return nil
		}
		after = list[len(list)-1].Seq
		total := int64(1)
		for i := range list {
			total += list[i].Bytes()
		}
		// Slowly up, since what was small so far may be followed by photos.
		limit = int(min(max(walkBytes*int64(len(list))/total, 1), int64(2*limit), walkMost))
	}
}
