package store

import (
	"context"
	"slices"
)

// walkPage is how many exchanges are read at once where they are small.
const walkPage = 256

// EachExchange hands a session's exchanges to see, oldest first, page by page,
// so that not much of the session is in memory at once: see PageBytes.
// ErrNotFound where there is no such session, at the start or any more.
func EachExchange(ctx context.Context, s Sessions, scope Scope, session string, see func([]Exchange) error) error {
	for after := int64(0); ; {
		list, err := s.Exchanges(ctx, scope, session, after, walkPage, Ascending)
		if err != nil || len(list) == 0 {
			return err
		}
		if err := see(list); err != nil {
			return err
		}
		if len(list) < walkPage && !Full(list, PageBytes) {
			return nil
		}
		after = list[len(list)-1].Seq
	}
}

// ExchangeReader is the part of a store that EachExchangeAt uses.
type ExchangeReader interface {
	ExchangesAt(ctx context.Context, scope Scope, session string, seqs []int64) ([]Exchange, error)
}

// EachExchangeAt hands the exchanges with the given Seqs to see, in rising order
// and once each, as EachExchange does; those that aren't there are left out.
func EachExchangeAt(ctx context.Context, s ExchangeReader, scope Scope, session string, seqs []int64, see func([]Exchange) error) error {
	rest := slices.Compact(slices.Sorted(slices.Values(seqs)))
	for len(rest) > 0 {
		list, err := s.ExchangesAt(ctx, scope, session, rest)
		if err != nil || len(list) == 0 {
			return err
		}
		if err := see(list); err != nil {
			return err
		}
		if !Full(list, PageBytes) {
			return nil
		}
		last := list[len(list)-1].Seq
		rest = slices.DeleteFunc(rest, func(seq int64) bool { return seq <= last })
	}
	return nil
}
