package main

// What is to be reached on the collections that are known by name.

// systems of the memory section that are Backstory's own.
const (
	systemFull  = "backstory"
	systemPlain = "backstory, role and text only"
)

type goalKey struct {
	section, collection, system string
	category                    string
	budget                      int
}

type goals = map[string]float64

var goalTable = map[goalKey]goals{
	{sectionMemory, "locomo", systemFull, "", 1000}: {"all": .76, "any": .88},
	{sectionMemory, "locomo", systemFull, "", 2000}: {"all": .82, "any": .93},
	{sectionMemory, "locomo", systemFull, "", 4000}: {"all": .86, "any": .96},
	{sectionMemory, "locomo", systemFull, "", 8000}: {"all": .91, "any": .98},

	{sectionMemory, "locomo", systemPlain, "", 1000}: {"all": .69},
	{sectionMemory, "locomo", systemPlain, "", 2000}: {"all": .75},
	{sectionMemory, "locomo", systemPlain, "", 4000}: {"all": .80},
	{sectionMemory, "locomo", systemPlain, "", 8000}: {"all": .85},

	{sectionMemory, "beam", systemFull, "", 2000}:  {"all": .60},
	{sectionMemory, "beam", systemFull, "", 4000}:  {"all": .67},
	{sectionMemory, "beam", systemFull, "", 8000}:  {"all": .75},
	{sectionMemory, "beam", systemFull, "", 16000}: {"all": .80},

	{sectionMemory, "realtalk", systemFull, "", 1000}: {"all": .58},
	{sectionMemory, "realtalk", systemFull, "", 2000}: {"all": .66},
	{sectionMemory, "realtalk", systemFull, "", 4000}: {"all": .72},
	{sectionMemory, "realtalk", systemFull, "", 8000}: {"all": .79},

	{sectionFiles, "squad_files", "", "", 1000}: {"full": .92},
	{sectionFiles, "squad_files", "", "", 2000}: {"full": .955},
	{sectionFiles, "squad_files", "", "", 4000}: {"full": .98},

	{sectionFiles, "chroma_files", "", "", 1000}: {"full": .80},
	{sectionFiles, "chroma_files", "", "", 2000}: {"full": .91},
	{sectionFiles, "chroma_files", "", "", 4000}: {"full": .95},

	{sectionSearch, "cranfield", "", "", 0}: {"ndcg@10": .40},
	{sectionSearch, "code", "", "", 0}:      {"recall@5": .86, "recall@10": .885, "recall@20": .90},
	{sectionSearch, "xquad_ru", "", "", 0}:  {"recall@5": .975},
	{sectionSearch, "xquad_zh", "", "", 0}:  {"recall@5": .985},

	{sectionDocs, "docs", "", "", 0}:    {"snippets": .96, "perfect": .93},
	{sectionDocs, "docs", "", "pdf", 0}: {"snippets": .93, "perfect": .88},

	{sectionRobust, "docs", "", "", 0}: {"passed": 1},
}

// goalsOf are the goals for a row, by figure; nil: there are none.
func goalsOf(r *row) goals {
	return goalTable[goalKey{r.Section, r.Collection, r.System, r.Category, r.Budget}]
}
