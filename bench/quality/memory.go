package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/backstory-proxy/backstory/tokens"
)

const memoryTenant = "memory"

// variant is how much of a conversation is imported.
type variant struct {
	system string
	names  bool // and dates
}

var variants = []variant{{systemFull, true}, {systemPlain, false}}

// session is the id that a session is imported by.
func (v variant) session(collection, id string) string {
	if v.names {
		return collection + "/" + id
	}
	return collection + "/" + id + "/text"
}

// chat are the messages as they are imported.
func (v variant) chat(s *session) ([]said, error) {
	messages := make([]said, len(s.Messages))
	for i, m := range s.Messages {
		messages[i] = said{Role: m.Role, Content: m.Text}
		if !v.names {
			continue
		}
		messages[i].Name = m.Name
		if m.Date != "" {
			t, err := date(m.Date)
			if err != nil {
				return nil, fmt.Errorf("session %s: message %s: %w", s.ID, m.ID, err)
			}
			messages[i].Created = t.Unix()
		}
	}
	return messages, nil
}

// budgets are those that a collection is measured at, in tokens, by the mean
// length of its sessions.
func (c *conversations) budgets() []int {
	const short, long = 4_000, 50_000 // tokens
	sum := 0
	for i := range c.sessions {
		for _, m := range c.sessions[i].Messages {
			sum += tokens.O200K().Count(m.Text) + perMessage
		}
	}
	switch mean := sum / max(1, len(c.sessions)); {
	case mean < short:
		return []int{250, 500, 1000, 2000}
	case mean > long:
		return []int{2000, 4000, 8000, 16000}
	}
	return []int{1000, 2000, 4000, 8000}
}

// importAll imports the sessions, once for each variant.
func (c *conversations) importAll(ctx context.Context, s *server) error {
	for i := range c.sessions {
		for _, v := range variants {
			messages, err := v.chat(&c.sessions[i])
			if err != nil {
				return err
			}
			if err := s.append(ctx, memoryTenant, v.session(c.name, c.sessions[i].ID), messages); err != nil {
				return fmt.Errorf("import of session %s: %w", c.sessions[i].ID, err)
			}
		}
	}
	return nil
}

// answer is what the prompt of one question holds.
type answer struct {
	all, any bool    // of the evidence
	recall   float64 // the share of it
	tokens   int     // that were added
	lastTwo  *bool   // nil: the last two exchanges don't fit
	short    bool    // they leave three quarters of the budget, or 3,000 tokens
}

// ask previews every question at a budget that the server has been given.
func (c *conversations) ask(ctx context.Context, s *server, v variant, budget int) ([]answer, error) {
	evidence := c.evidence()
	last := make(map[string][]said) // the end of each session
	short := make(map[string]bool)
	for i := range c.sessions {
		messages, err := v.chat(&c.sessions[i])
		if err != nil {
			return nil, err
		}
		if end := lastExchanges(messages, 2); historyTokens(end) <= budget {
			last[c.sessions[i].ID] = end
			short[c.sessions[i].ID] = historyTokens(end) <= budget-min(budget*3/4, 3000)
		}
	}
	answers := make([]answer, len(c.questions))
	return answers, each(ctx, len(c.questions), func(ctx context.Context, i int) error {
		q := &c.questions[i]
		p, err := s.preview(ctx, memoryTenant, v.session(c.name, q.Session), said{Role: "user", Content: q.Question})
		if err != nil {
			return fmt.Errorf("question %d: %w", i+1, err)
		}
		in, err := contextOf(p.Messages, q.Question)
		if err != nil {
			return fmt.Errorf("question %d: %w", i+1, err)
		}
		a := &answers[i]
		a.judge(in.text, q, evidence[q.Session])
		a.tokens = max(in.tokens, p.added())
		if end := last[q.Session]; end != nil {
			kept := contains(p.Messages, end)
			a.lastTwo, a.short = &kept, short[q.Session]
		}
		return nil
	})
}

// evidence are the words of all messages that are evidence, by session and id.
func (c *conversations) evidence() map[string]map[string]words {
	evidence := make(map[string]map[string]words)
	for i := range c.sessions {
		of := make(map[string]words)
		for _, m := range c.sessions[i].Messages {
			of[m.ID] = wordsOf(withoutPhoto(m.Text))
		}
		evidence[c.sessions[i].ID] = of
	}
	return evidence
}

// judge looks for the evidence in a context.
func (a *answer) judge(context string, q *question, evidence map[string]words) {
	p := newPrompted(context)
	found := 0
	for _, id := range q.Evidence {
		if w := evidence[id]; p.includes(&w) {
			found++
		}
	}
	a.all, a.any = found == len(q.Evidence), found > 0
	a.recall = float64(found) / float64(len(q.Evidence))
}

// included is what went into a prompt beside the question, as text and in tokens.
type included struct {
	text   string
	tokens int
}

// contextOf returns what the prompt of a question includes beside the question.
func contextOf(messages []said, question string) (included, error) {
	if len(messages) == 0 {
		return included{}, fmt.Errorf("the prompt is empty")
	}
	last := len(messages) - 1
	quoted, ok := strings.CutSuffix(messages[last].Content, question)
	if !ok {
		return included{}, fmt.Errorf("the prompt doesn't end with the question")
	}
	var b strings.Builder
	for _, m := range messages[:last] {
		b.WriteString(m.Content)
		b.WriteByte('\n')
	}
	b.WriteString(quoted)
	return included{b.String(), historyTokens(messages[:last]) + tokens.O200K().Count(quoted)}, nil
}

// added is what the preview itself says was added, in tokens.
func (p *preview) added() int {
	n := 0
	for _, part := range p.Parts {
		if part.Kind != "request" && part.Kind != "system" {
			n += part.Tokens
		}
	}
	return n
}

// historyTokens counts messages as the model does: content and name, 4 for the
// message and 1 for having a name.
func historyTokens(messages []said) int {
	n := 0
	for _, m := range messages {
		n += perMessage + tokens.O200K().Count(m.Content)
		if m.Name != "" {
			n += 1 + tokens.O200K().Count(m.Name)
		}
	}
	return n
}

// lastExchanges are the last n exchanges of a session: a user's messages and
// the answers to them. What nobody has answered yet isn't one.
func lastExchanges(messages []said, n int) []said {
	end := len(messages)
	for end > 0 && messages[end-1].Role == "user" {
		end--
	}
	start := end
	for start > 0 && n > 0 {
		start--
		if messages[start].Role == "user" && (start == 0 || messages[start-1].Role != "user") {
			n--
		}
	}
	return messages[start:end]
}

// contains reports whether messages stand in others in one run, word for word.
func contains(messages, run []said) bool {
	for i := 0; i+len(run) <= len(messages); i++ {
		j := 0
		for j < len(run) && same(&messages[i+j], &run[j]) {
			j++
		}
		if j == len(run) {
			return true
		}
	}
	return false
}

func same(a, b *said) bool { return a.Role == b.Role && a.Name == b.Name && a.Content == b.Content }

// baselines measures the policies that need no server.
func (c *conversations) baselines(budget int, archives map[string]*archive) map[string][]answer {
	evidence := c.evidence()
	recent, matching := make([]answer, len(c.questions)), make([]answer, len(c.questions))
	for i := range c.questions {
		q := &c.questions[i]
		a := archives[q.Session]
		text, size := a.recent(budget)
		recent[i].tokens = size
		recent[i].judge(text, q, evidence[q.Session])
		text, size = a.matching(q.Question, budget)
		matching[i].tokens = size
		matching[i].judge(text, q, evidence[q.Session])
	}
	return map[string][]answer{systemRecent: recent, systemBM25: matching}
}

// archives are the sessions as the baselines see them, by id.
func (c *conversations) archives() map[string]*archive {
	archives := make(map[string]*archive)
	for _, s := range c.sessions {
		archives[s.ID] = newArchive(s)
	}
	return archives
}

// The policies that Backstory is compared with.
const (
	systemRecent = "most recent first"
	systemBM25   = "BM25 alone"
)

// memoryRows sums answers up: over all questions, and by category.
func memoryRows(of row, questions []question, answers []answer) []row {
	type sums struct{ all, any, recall, tokens, over, lastTwo, lastShort mean }
	by := map[string]*sums{"": {}}
	order := []string{""}
	for i, a := range answers {
		category := questions[i].Category
		if category != "" && by[category] == nil {
			by[category] = new(sums)
			order = append(order, category)
		}
		in := []string{"", category}
		if category == "" {
			in = in[:1]
		}
		for _, k := range in {
			s := by[k]
			s.all.share(a.all)
			s.any.share(a.any)
			s.recall.add(a.recall)
			s.tokens.add(float64(a.tokens))
			s.over.share(a.tokens > of.Budget)
			if a.lastTwo != nil {
				s.lastTwo.share(*a.lastTwo)
				if a.short {
					s.lastShort.share(*a.lastTwo)
				}
			}
		}
	}
	var rows []row
	for _, k := range order {
		s, r := by[k], of
		r.Category, r.N = k, s.all.n
		r.Figures = map[string]float64{
			"all": s.all.value(), "any": s.any.value(), "recall": s.recall.value(),
			"tokens_mean": s.tokens.value(), "tokens_max": s.tokens.max, "over_budget": s.over.sum,
		}
		if s.lastTwo.n > 0 {
			r.Figures["last_two"] = s.lastTwo.value()
		}
		if s.lastShort.n > 0 {
			r.Figures["last_two_short"] = s.lastShort.value()
		}
		rows = append(rows, r)
	}
	return rows
}
