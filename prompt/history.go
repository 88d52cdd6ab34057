package prompt

// kept is how many of the newest exchanges stand wherever they fit beside
// what is reserved for older messages.
const kept = 2

// first is the index of the oldest exchange that is included within share
// tokens; the kept ones may take up to most.
//
// The cut moves in steps. Where the session no longer fits, it stands at a
// multiple of a quarter of the share, counted from the session's beginning:
// there it stays while the session grows by that quarter, and with it the
// front of the prompt, which the router has cached. Exchanges of ordinary size
// fill between three quarters of the share and all of it.
func first(earlier []Earlier, share, most int) int {
	n := len(earlier)
	if n == 0 {
		return 0
	}
	cut := cutAt(earlier[n-1].End, placed(earlier, share))
	i, sum, exchanges := n, 0, 0
	for i > 0 {
		e := &earlier[i-1]
		fits := sum+e.Tokens <= share && e.Start >= cut || sum+e.Tokens <= most && exchanges < kept
		if !fits && !e.Required {
			break
		}
		sum += e.Tokens
		i--
		if !e.Unanswered {
			exchanges++
		}
	}
	return i
}

// cutAt is the place in the session before which nothing is included.
func cutAt(end, share int64) int64 {
	if end <= share {
		return 0
	}
	step := max(1, share/4)
	return (end - share + step - 1) / step * step
}

// placed is how much of the session a share holds, in the tokens by which
// places in it are told. A model may count more of them than the session does;
// the cut would then be left to the sum of the exchanges, and move every time.
// The relation is an average that changes a little with each exchange: it is
// rounded up, so that the cut doesn't.
func placed(earlier []Earlier, share int) int64 {
	const grain = 16
	var tokens, length int64
	for i := range earlier {
		tokens += int64(earlier[i].Tokens)
		length += earlier[i].End - earlier[i].Start
	}
	if tokens <= length || length <= 0 {
		return int64(share)
	}
	sixteenths := (tokens*grain + length - 1) / length
	return int64(share) * grain / sixteenths
}
