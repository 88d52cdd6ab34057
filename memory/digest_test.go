package memory_test

import (
	"strings"
	"testing"

	"github.com/backstory-proxy/backstory/memory"
	"github.com/backstory-proxy/backstory/openai"
	"github.com/backstory-proxy/backstory/store"
)

func digest(json string) store.Digest {
	m := openai.ParseMessage([]byte(json))
	return memory.Digest(&m)
}

func TestDigestOfTheSameMessage(t *testing.T) {
	call := func(f string) string {
		return `{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":` + f + `}]}`
	}
	for name, same := range map[string][]string{
		"text as a string and as a part": {
			`{"role":"user","content":"a \"b\""}`,
			`{"role":"user","content":[{"type":"text","text":"a \"b\""}]}`,
			`{"role":"user","content":[{"text":"a \u0022b\u0022","type":"text","cache_control":{"type":"ephemeral"}}]}`,
			`{"role":"user","content":[{"type":"text","text":""},{"type":"text","text":"a \"b\""}]}`,
		},
		"no content": {
			`{"role":"assistant"}`,
			`{"role":"assistant","content":null}`,
			`{"role":"assistant","content":""}`,
			`{"role":"assistant","content":"  "}`,
			`{"role":"assistant","content":[]}`,
			`{"role":"assistant","content":[{"type":"text","text":""}]}`,
			`{"role":"assistant","content":[{"type":"text","text":" "}]}`,
		},
		"members in another order": {
			`{"role":"tool","tool_call_id":"1","content":"x"}`,
			`{"content":"x","role":"tool","tool_call_id":"1"}`,
			`{ "tool_call_id" : "1", "content": "x",` + "\n" + ` "role":"tool" }`,
		},
		"added nulls and empty lists": {
			`{"role":"assistant","content":"x"}`,
			`{"role":"assistant","content":"x","refusal":null,"annotations":[],"audio":null,"function_call":null,"tool_calls":null,"name":null,"tool_call_id":null}`,
			`{"role":"assistant","content":"x","tool_calls":[],"refusal":""}`,
			`{"role":"assistant","content":"x","reasoning":"hm","reasoning_details":[{"text":"hm"}]}`,
		},
		"arguments encoded again": {
			call(`{"name":"f","arguments":"{\"a\":1,\"b\":[\"é\",{\"c\":null}]}"}`),
			call(`{"arguments":"{ \"b\" : [\"\\u00e9\", {}], \"a\": 1 }\n","name":"f"}`),
		},
		"no arguments": {
			call(`{"name":"f","arguments":""}`),
			call(`{"name":"f","arguments":"{}"}`),
			call(`{"name":"f","arguments":" { } "}`),
			call(`{"name":"f"}`),
		},
		"a call with members that say nothing": {
			`{"role":"assistant","tool_calls":[{"id":"1","function":{"name":"f","arguments":"{}"}}]}`,
			`{"role":"assistant","tool_calls":[{"index":0,"custom":null,"type":"function","id":"1","function":{"name":"f","arguments":"{}"}}],"content":""}`,
		},
		"a custom call": {
			`{"role":"assistant","tool_calls":[{"id":"1","type":"custom","custom":{"name":"f","input":"x"}}]}`,
			`{"role":"assistant","tool_calls":[{"id":"1","type":"custom","function":null,"custom":{ "input":"x", "name":"f" }}]}`,
		},
		"a function_call": {
			`{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{\"x\":1}"}}`,
			`{"role":"assistant","function_call":{"arguments":"{\"x\": 1}","name":"f"},"tool_calls":null}`,
		},
		"white space around the text": {
			`{"role":"assistant","content":"x"}`,
			`{"role":"assistant","content":" x\n\n"}`,
			`{"role":"assistant","content":[{"type":"text","text":"\tx"}]}`,
		},
		"an image": {
			`{"role":"user","content":[{"type":"text","text":"x"},{"type":"image_url","image_url":{"url":"https://x/y","detail":"low"}}]}`,
			`{"role":"user","content":[{"text":"x","type":"text"},{"image_url":{"detail":"low","url":"https:\/\/x\/y","x":null},"type":"image_url"}]}`,
		},
	} {
		for _, json := range same[1:] {
			if digest(json) != digest(same[0]) {
				t.Errorf("%s: another digest of\n\t%s\nthan of\n\t%s", name, json, same[0])
			}
		}
	}
}

func TestDigestOfOtherMessages(t *testing.T) {
	call := func(id, f string) string {
		return `{"role":"assistant","tool_calls":[{"id":"` + id + `","type":"function","function":` + f + `}]}`
	}
	image := func(url, detail string) string {
		return `{"role":"user","content":[{"type":"image_url","image_url":{"url":"` + url + `","detail":"` + detail + `"}}]}`
	}
	long := strings.Repeat("A", 10_000)
	// No two of them are the same.
	others := []string{
		`{"role":"user","content":"x"}`,
		`{"role":"assistant","content":"x"}`,
		`{"role":"tool","content":"x"}`,
		`{"role":"user","content":"X"}`,
		`{"role":"user","content":""}`,
		`{"role":"user","content":"x y"}`,
		`{"role":"user","content":"x  y"}`,
		`{"role":"user","content":"xtexty"}`,
		`{"role":"user","content":[{"type":"text","text":"x"},{"type":"text","text":"y"}]}`,
		`{"role":"user","content":[{"type":"text","text":"y"},{"type":"text","text":"x"}]}`,
		`{"role":"user","content":[{"type":"text","text":"xy"}]}`,
		`{"role":"assistant","content":null,"refusal":"no"}`,
		`{"role":"assistant","content":"x","refusal":"no"}`,
		`{"role":"tool","tool_call_id":"1","content":"x"}`,
		`{"role":"tool","tool_call_id":"2","content":"x"}`,
		`{"role":"function","name":"f","content":"x"}`,
		`{"role":"function","name":"g","content":"x"}`,
		call("1", `{"name":"f","arguments":"{}"}`),
		call("2", `{"name":"f","arguments":"{}"}`),
		call("1", `{"name":"g","arguments":"{}"}`),
		call("1", `{"name":"f","arguments":"{\"a\":1}"}`),
		call("1", `{"name":"f","arguments":"{\"a\":1.0}"}`),
		call("1", `{"name":"f","arguments":"{\"a\":\"1\"}"}`),
		call("1", `{"name":"f","arguments":"{\"a\":12345678901234567890}"}`),
		call("1", `{"name":"f","arguments":"{\"a\":12345678901234567891}"}`),
		call("1", `{"name":"f","arguments":"{\"a\":[]}"}`),
		call("1", `{"name":"f","arguments":"{\"a\":{}}"}`),
		call("1", `{"name":"f","arguments":"{\"a\":[1,2]}"}`),
		call("1", `{"name":"f","arguments":"{\"a\":[2,1]}"}`),
		call("1", `{"name":"f","arguments":"{\"a\":[1],\"b\":2}"}`),
		call("1", `{"name":"f","arguments":"{\"a\":[1,\"b\",2]}"}`),
		call("1", `{"name":"f","arguments":"{\"a\":[null]}"}`),
		call("1", `{"name":"f","arguments":"{\"a\":"}`),
		call("1", `{"name":"f","arguments":"{\"a\":1} x"}`),
		call("1", `{"name":"fa","arguments":"{}"}`),
		call("1f", `{"name":"a","arguments":"{}"}`),
		call("1", `{"name":"f","arguments":"{}"}`)[:len(call("1", `{"name":"f","arguments":"{}"}`))-2] + `,{"id":"2","function":{"name":"f","arguments":"{}"}}]}`,
		`{"role":"assistant","function_call":{"name":"f","arguments":"{}"}}`,
		`{"role":"assistant","function_call":{"name":"g","arguments":"{}"}}`,
		`{"role":"assistant","tool_calls":[{"id":"1","type":"custom","custom":{"name":"f","input":"x"}}]}`,
		`{"role":"assistant","tool_calls":[{"id":"1","type":"custom","custom":{"name":"f","input":"y"}}]}`,
		image("https://x/1", "low"), image("https://x/2", "low"), image("https://x/1", "high"),
		image("data:image/png;base64,"+long+"B", "low"), image("data:image/png;base64,"+long+"C", "low"),
		`{"role":"user","content":[{"type":"input_audio","input_audio":{"data":"AAAA","format":"wav"}}]}`,
		`{"role":"user","content":[{"type":"input_audio","input_audio":{"data":"AAAB","format":"wav"}}]}`,
	}
	seen := map[store.Digest]string{}
	for _, json := range others {
		d := digest(json)
		if before, ok := seen[d]; ok {
			t.Errorf("the same digest of\n\t%s\nand\n\t%s", before, json)
		}
		seen[d] = json
	}
}

func TestDigestOfDeepArguments(t *testing.T) {
	for _, deep := range []string{strings.Repeat("[", 1e6), strings.Repeat("[", 9000) + strings.Repeat("]", 9000)} {
		if digest(`{"role":"assistant","tool_calls":[{"function":{"arguments":"`+deep+`"}}]}`) == (store.Digest{}) {
			t.Error("no digest")
		}
	}
}

func TestConversation(t *testing.T) {
	messages := parse("s:x u:A s:y a:a c:1 r:1")
	conv := memory.Conversation(messages)
	if len(conv) != 4 {
		t.Fatalf("%d messages are said", len(conv))
	}
	for i, index := range []int{1, 3, 4, 5} {
		m := &messages[index]
		if s := conv[i]; s.Index != index || s.Role != m.Role || s.Digest != memory.Digest(m) {
			t.Errorf("message %d: %+v", i, s)
		}
	}
}
