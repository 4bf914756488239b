package write_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	unstructuredv1 "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/anykind/anykind/apitest/internal/testing/normalize"
)

// A scenario is a file of requests that are sent in order:
//
//	POST /api/v1/namespaces/{ns}/configmaps as=first type=application/yaml agent=kubectl/1
//	{"metadata": {"name": "x"}}
//
// A body ends at an empty line. {ns} is the scenario's namespace; {first.metadata.uid} is a field of the response to the request
// of that label. The responses of the sandbox's API server are in testdata/recorded, normalized; those of the Writer must be
// equal. With a sandbox, its responses are compared with the recorded ones, too, and ANYKIND_RECORD=1 records them.
type request struct {
	method, path, mediaType, agent, label string
	body                                  string
}

// response is a normalized response.
type response struct {
	Request  string   `json:"request"`
	Code     int      `json:"code"`
	Warnings []string `json:"warnings,omitempty"`
	Body     any      `json:"body"`
}

// player sends requests to a server. The body of its response is decoded JSON.
type player interface {
	send(t *testing.T, req request) (code int, warnings []string, body map[string]any)
}

func readScenario(t *testing.T, path string) []request {
	t.Helper()
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	var requests []request
	for _, block := range regexp.MustCompile(`\n\s*\n`).Split(string(content), -1) {
		lines := strings.Split(strings.TrimSpace(block), "\n")
		for len(lines) > 0 && strings.HasPrefix(lines[0], "#") {
			lines = lines[1:]
		}
		if len(lines) == 0 || lines[0] == "" {
			continue
		}
		words := strings.Fields(lines[0])
		req := request{method: words[0], path: words[1], agent: "scenario/1", mediaType: "application/json", body: strings.Join(lines[1:], "\n")}
		for _, word := range words[2:] {
			name, value, _ := strings.Cut(word, "=")
			switch name {
			case "as":
				req.label = value
			case "type":
				req.mediaType = value
			case "agent":
				req.agent = value
			default:
				t.Fatalf("%s: unknown option %s", path, word)
			}
		}
		requests = append(requests, req)
	}
	return requests
}

var placeholder = regexp.MustCompile(`\{([a-z]\w*)((?:\.\w+)*)\}`)

// play sends a scenario's requests and returns the normalized responses.
func play(t *testing.T, p player, namespace string, requests []request) []response {
	t.Helper()
	normalizer := normalize.New(namespace, "NAMESPACE", "kube-apiserver-v1.36.3-linux-amd64", "kube-apiserver")
	labels := map[string]map[string]any{}
	expand := func(text string) string {
		return placeholder.ReplaceAllStringFunc(text, func(match string) string {
			parts := placeholder.FindStringSubmatch(match)
			if parts[1] == "ns" {
				return namespace
			}
			value, found, err := unstructuredv1.NestedFieldNoCopy(labels[parts[1]], strings.Split(strings.TrimPrefix(parts[2], "."), ".")...)
			require.True(t, found && err == nil, "no %s in %v", match, labels[parts[1]])
			if text, ok := value.(string); ok {
				return text
			}
			content, err := json.Marshal(value)
			require.NoError(t, err)
			return string(content)
		})
	}
	var responses []response
	for _, req := range requests {
		shown := req.method + " " + req.path + " " + summaryOf(req.body)
		req.path = expand(req.path)
		req.body = expand(req.body)
		code, warnings, body := p.send(t, req)
		if req.label != "" {
			labels[req.label] = body
		}
		for i := range warnings {
			warnings[i] = normalizer.Text(warnings[i])
		}
		responses = append(responses, response{shown, code, warnings, normalizer.Value(body)})
	}
	return responses
}

func summaryOf(body string) string {
	body = strings.Join(strings.Fields(body), " ")
	if len(body) > 200 {
		body = body[:200] + "…"
	}
	return body
}

func scenarios(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob("testdata/scenarios/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	return paths
}

func recordedPath(scenario string) string {
	return filepath.Join("testdata", "recorded", strings.TrimSuffix(filepath.Base(scenario), ".txt")+".json")
}

func namespaceOf(scenario string) string {
	return "write-" + strings.ReplaceAll(strings.TrimSuffix(filepath.Base(scenario), ".txt"), "_", "-")
}

// compareRecorded reports each response that differs.
func compareRecorded(t *testing.T, want, got []response) {
	t.Helper()
	require.Len(t, got, len(want))
	for i := range want {
		if lines := normalize.Differences(tree(t, want[i]), tree(t, got[i])); len(lines) > 0 {
			t.Errorf("request %d: %s\n\t%s", i+1, want[i].Request, strings.Join(lines, "\n\t"))
		}
	}
}

// shownObject is a patched object in an error text, in a JSON string: the fields of Go structs have an order of their own there.
var shownObject = regexp.MustCompile(`(Invalid value: )\\"\{.*\}\\":`)

// tree returns the compared parts of a response as decoded JSON.
func tree(t *testing.T, one response) any {
	t.Helper()
	var value any
	content := shownObject.ReplaceAllString(marshal(t, one), `$1\"OBJECT\":`)
	require.NoError(t, json.Unmarshal([]byte(content), &value))
	if !strings.Contains(one.Request, "example.com/") { // of a built-in kind
		fields, _ := value.(map[string]any)
		fields["body"] = normalize.WithoutTexts(fields["body"])
		warnings, _ := fields["warnings"].([]any)
		slices.SortFunc(warnings, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	}
	return value
}

func marshal(t *testing.T, value any) string {
	t.Helper()
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	require.NoError(t, encoder.Encode(value))
	return buffer.String()
}

func readRecorded(t *testing.T, path string) []response {
	t.Helper()
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	var responses []response
	require.NoError(t, json.Unmarshal(content, &responses))
	return responses
}

// requestTarget is the resource and object of a request's path.
type requestTarget struct {
	group, version, plural, namespace, name, subresource string
	query                                                url.Values
}

func targetOf(t *testing.T, path string) requestTarget {
	t.Helper()
	parsed, err := url.Parse(path)
	require.NoError(t, err)
	parts := strings.Split(strings.Trim(parsed.Path, "/"), "/")
	target := requestTarget{query: parsed.Query()}
	if parts[0] == "api" {
		target.version = parts[1]
		parts = parts[2:]
	} else {
		target.group = parts[1]
		target.version = parts[2]
		parts = parts[3:]
	}
	if parts[0] == "namespaces" && len(parts) > 2 && parts[2] != "status" && parts[2] != "finalize" {
		target.namespace = parts[1]
		parts = parts[2:]
	}
	target.plural = parts[0]
	if len(parts) > 1 {
		target.name = parts[1]
	}
	if len(parts) > 2 {
		target.subresource = parts[2]
	}
	return target
}

func describe(req request) string { return fmt.Sprintf("%s %s", req.method, req.path) }
