package main

import "strings"

// counts are what became of the exchanges of some rounds.
type counts struct {
	acknowledged int // answered to the end
	found        int // of these: stored, once, with their reply
	lost         int // of these: not stored
	doubled      int // stored more than once
	torn         int // without their reply, or a reply without its question
	disordered   int // stored behind a later one of the session
	told         int // answered, with the word that they weren't saved
	toldKept     int // of these: stored all the same
	refused      int // not answered; the model was not called
	failed       int // not known to the client: broken off on the way
}

func (c *counts) add(o counts) {
	c.acknowledged += o.acknowledged
	c.found += o.found
	c.lost += o.lost
	c.doubled += o.doubled
	c.torn += o.torn
	c.disordered += o.disordered
	c.told += o.told
	c.toldKept += o.toldKept
	c.refused += o.refused
	c.failed += o.failed
}

// bad is how many exchanges broke what Backstory promises.
func (c *counts) bad() int { return c.lost + c.doubled + c.torn + c.disordered }

// check compares what a client knows of its session with what is stored of it.
func check(s *session, stored []string) (c counts) {
	at := map[string][]int{} // the places of each question
	for i, m := range stored {
		if strings.HasPrefix(m, "re ") {
			if i == 0 || !strings.HasPrefix("re "+stored[i-1], m) { // a client may have left early
				c.torn++
			}
			continue
		}
		at[m] = append(at[m], i)
	}
	last := -1 // the place of the newest acknowledged one
	for _, one := range s.said {
		places := at[one.name]
		if len(places) > 1 {
			c.doubled++
		}
		switch one.outcome {
		case acknowledged:
			c.acknowledged++
			switch {
			case len(places) == 0:
				c.lost++
			case places[0]+1 >= len(stored) || stored[places[0]+1] != "re "+one.name:
				c.torn++
			case places[0] < last:
				c.disordered++
			default:
				c.found++
			}
			if len(places) > 0 {
				last = max(last, places[0])
			}
		case told:
			c.told++
			if len(places) > 0 {
				c.toldKept++
			}
		case refused:
			c.refused++
		case unknown, left:
			c.failed++
		}
	}
	return c
}
