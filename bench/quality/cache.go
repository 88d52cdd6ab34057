package main

import (
	"context"
	"math/rand/v2"
	"strings"

	"github.com/backstory-proxy/backstory/tokens"
)

// What a router's prompt cache can reuse: the tokens that a prompt has in common
// with the one before it, from the front.
const (
	cacheTenant    = "cache"
	cacheExchanges = 200
	cacheBudget    = 8000 // tokens
	cacheAnswer    = 155  // tokens; an exchange has about 200
)

// instructions are what every request of the session begins with.
const instructions = "You help the people who run a botanical garden. Answer in plain words, name the house and the bed, and say when you don't know."

// talk is a session of exchanges, each a question and its answer.
func talk() [][2]said {
	houses := strings.Fields("palm fern orchid cactus alpine citrus bamboo heather water rose herb moss")
	things := strings.Fields("heating labels pump seedlings glass paths compost shading visitors budget bees frost signs lamps drains tools")
	verbs := strings.Fields("check order repair move count replace clean postpone measure paint water record")
	days := strings.Fields("Monday Tuesday Wednesday Thursday Friday Saturday Sunday")
	rnd := rand.New(rand.NewPCG(200, 8))
	pick := func(list []string) string { return list[rnd.IntN(len(list))] }
	exchanges := make([][2]said, cacheExchanges)
	for i := range exchanges {
		house, thing := pick(houses), pick(things)
		question := "What did we say about the " + thing + " in the " + house + " house, and should I " + pick(verbs) +
			" them before " + pick(days) + "? The " + pick(things) + " of the " + pick(houses) + " house are waiting as well."
		var b strings.Builder
		for tokens.O200K().Count(b.String()) < cacheAnswer {
			b.WriteString("In the " + house + " house, " + pick(verbs) + " the " + thing + " on " + pick(days) + " and " +
				pick(verbs) + " the " + pick(things) + " after that. ")
			house, thing = pick(houses), pick(things)
		}
		exchanges[i] = [2]said{{Role: "user", Content: question}, {Role: "assistant", Content: strings.TrimSpace(b.String())}}
	}
	return exchanges
}

// cachedTalk holds the session through the API, and returns the row of it. The
// server has been given its budget.
func cachedTalk(ctx context.Context, s *server, session, system string) (row, error) {
	var prompts [][]said
	for _, exchange := range talk() {
		p, err := s.preview(ctx, cacheTenant, session, said{Role: "system", Content: instructions}, exchange[0])
		if err != nil {
			return row{}, err
		}
		prompts = append(prompts, p.Messages)
		if err := s.append(ctx, cacheTenant, session, exchange[:]); err != nil {
			return row{}, err
		}
	}
	r := cacheRow(prompts)
	r.System, r.Store = system, s.name
	return r, nil
}

// slidingWindow is the row of what most proxies do: the newest exchanges that
// fit, cut again for each request.
func slidingWindow() row {
	var prompts [][]said
	exchanges := talk()
	for i := range exchanges {
		start, size := i, 0
		for start > 0 && size+historyTokens(exchanges[start-1][:]) <= cacheBudget {
			start--
			size += historyTokens(exchanges[start][:])
		}
		prompt := []said{{Role: "system", Content: instructions}}
		for _, exchange := range exchanges[start:i] {
			prompt = append(prompt, exchange[:]...)
		}
		prompts = append(prompts, append(prompt, exchanges[i][0]))
	}
	r := cacheRow(prompts)
	r.System = "sliding window"
	return r
}

// cacheRow compares the prompts of a session, from where its budget is full.
func cacheRow(prompts [][]said) row {
	var share, prefix, size mean
	history := 0 // tokens of the session so far
	exchanges := talk()
	for i := 1; i < len(prompts); i++ {
		if history += historyTokens(exchanges[i-1][:]); history <= cacheBudget {
			continue
		}
		same, all := commonPrefix(prompts[i-1], prompts[i]), historyTokens(prompts[i])
		share.add(float64(same) / float64(all))
		prefix.add(float64(same))
		size.add(float64(all))
	}
	return row{
		Section: sectionCache, Collection: "200 exchanges of 200 tokens", Budget: cacheBudget, N: share.n,
		Figures: map[string]float64{"reusable": share.value(), "prefix_tokens": prefix.value(), "prompt_tokens": size.value()},
	}
}

// commonPrefix is the number of tokens that two prompts have in common from the
// front.
func commonPrefix(a, b []said) int {
	n := 0
	for i := range min(len(a), len(b)) {
		if !same(&a[i], &b[i]) {
			if a[i].Role == b[i].Role && a[i].Name == b[i].Name {
				n += tokens.O200K().Count(commonText(a[i].Content, b[i].Content))
			}
			break
		}
		n += historyTokens(a[i : i+1])
	}
	return n
}

// commonText is the beginning that two texts have in common, in whole words: a
// token that is cut isn't reused.
func commonText(a, b string) string {
	i := 0
	for i < min(len(a), len(b)) && a[i] == b[i] {
		i++
	}
	return a[:max(0, strings.LastIndexAny(a[:i], " \n"))]
}
