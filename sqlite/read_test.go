package sqlite

import (
	"context"
	"errors"
	"testing"
)

// A context that ends while rows are read has many faces in database/sql and
// SQLite; callers see one.
func TestAReadBrokenOffReturnsItsContextsError(t *testing.T) {
	const endless = `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT `
	for name, query := range map[string]string{
		"between rows": endless + `i FROM n`,
		"in a row":     endless + `max(i) FROM n`,
	} {
		t.Run(name, func(t *testing.T) {
			s := temporary(t)
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			err := func() error {
				if name == "in a row" {
					go cancel()
				}
				rows, err := s.query(ctx, query)
				if err != nil {
					return err
				}
				return each(ctx, rows, func() (bool, error) {
					cancel()
					return true, nil
				})
			}()
			if !errors.Is(err, context.Canceled) {
				t.Errorf("got %v", err)
			}
			if err := s.Ping(context.Background()); err != nil {
				t.Errorf("after that: %v", err)
			}
		})
	}
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	if err := failure(cancelled, errors.New("sql: Rows are closed")); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
