package difftest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/anykind/anykind/apitest/internal/nested"
	"github.com/anykind/anykind/apitest/internal/testing/normalize"
)

// normalizer replaces values specific to a run by labels. Equal runs have equal labels: a UID or resourceVersion becomes the
// operation of its first occurrence, a generated name its prefix, times and addresses a word. The resourceVersion of a list
// becomes the label of the last object written before it, because concurrent writers raise it.
type normalizer struct {
	script   transcript
	uids     map[string]string
	versions map[int64]string // of objects
	sorted   []int64
	byKind   map[string][]int64 // of the objects of a kind
	kind     string             // of the current response

	uuid, time, address, versionInText, tooOld, generated, age, untyped, nodePort *regexp.Regexp
}

// normalResponse is a decoded and normalised Response.
type normalResponse struct {
	Status      int
	ContentType string
	Warnings    []any
	Body        any
	Events      []any
}

// normalizeAll returns the normalised responses, and the ordered labels of all resourceVersions.
func normalizeAll(operations []Operation, script transcript) ([]normalResponse, []string) {
	n := &normalizer{
		script: script, uids: map[string]string{}, versions: map[int64]string{}, byKind: map[string][]int64{},
		uuid:          regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`),
		time:          regexp.MustCompile(`\b20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)`),
		address:       regexp.MustCompile(`\b10\.96\.\d+\.\d+\b`),
		versionInText: regexp.MustCompile(`(?i)(resource ?version[^0-9]{1,30})(\d+)`),
		tooOld:        regexp.MustCompile(`(too old resource version|Too large resource version): \d+(, current: \d+| \(\d+\))`),
		age:           regexp.MustCompile(`^(\d+[smhd]){1,2}$|^<invalid>$`),
		nodePort:      regexp.MustCompile(`:3[0-2]\d\d\d/`),
		untyped:       regexp.MustCompile(`(?s)(failed to create typed patch object \([^)]*\)|failed to convert new object): .*`),
		generated:     regexp.MustCompile(`generated-[bcdfghjklmnpqrstvwxz2456789]{5}\b`),
	}
	decoded := make([]normalResponse, len(script.responses))
	for i, response := range script.responses {
		n.kind = operations[i].Kind
		decoded[i] = normalResponse{Status: response.Status, ContentType: response.ContentType, Body: decode(response.Body, response.ContentType)}
		n.collect(fmt.Sprint(i), decoded[i].Body)
	}
	for i, response := range script.responses {
		n.kind = operations[i].Kind
		for _, line := range response.Events {
			event := decode(line, "")
			if isProgress(event) {
				continue
			}
			n.collect(fmt.Sprintf("%d.%d", i, len(decoded[i].Events)), event)
			decoded[i].Events = append(decoded[i].Events, event)
		}
	}
	n.sorted = slices.Sorted(maps.Keys(n.versions))
	for _, versions := range n.byKind {
		slices.Sort(versions)
	}
	for i := range decoded {
		n.kind = operations[i].Kind
		hideCacheVersion(operations[i], decoded[i].Body)
		decoded[i].Body = n.value("", decoded[i].Body)
		if operations[i].Class == "builtin" {
			decoded[i].Body = normalize.WithoutTexts(decoded[i].Body)
		}
		for _, warning := range script.responses[i].Warnings {
			if !strings.HasSuffix(warning, ` was not validated"`) { // package probe compares these
				decoded[i].Warnings = append(decoded[i].Warnings, n.text(warning))
			}
		}
		for at := range decoded[i].Events {
			hideBookmark(decoded[i].Events[at])
			if at > 0 {
				hideColumns(decoded[i].Events[at])
			}
			decoded[i].Events[at] = n.value("", decoded[i].Events[at])
		}
	}
	order := make([]string, len(n.sorted))
	for i, version := range n.sorted {
		order[i] = n.versions[version]
	}
	return decoded, order
}

// isProgress reports whether an event is a bookmark sent at an arbitrary time, not the end of the initial events.
func isProgress(event any) bool {
	e, _ := event.(map[string]any)
	annotations := nested.Map(e, "object", "metadata", "annotations")
	return e["type"] == "BOOKMARK" && annotations["k8s.io/initial-events-end"] == nil
}

// hideColumns removes the columns of a table after the first event of a watch. The API server repeats them if it has encoded the
// first event for a second watch, too.
func hideColumns(event any) {
	content, _ := event.(map[string]any)
	if table, isMap := content["object"].(map[string]any); isMap && table["kind"] == "Table" {
		delete(table, "columnDefinitions")
	}
}

// hideBookmark reduces a bookmark's object to its defined fields: kind, resourceVersion and the end of the initial events.
// Clients ignore the remaining fields, in which the server sends zero values of the Go type.
func hideBookmark(event any) {
	e, _ := event.(map[string]any)
	object := nested.Map(e, "object")
	metadata := nested.Map(object, "metadata")
	if e["type"] != "BOOKMARK" || metadata == nil {
		return
	}
	annotations := nested.Map(metadata, "annotations")
	maps.DeleteFunc(annotations, func(name string, _ any) bool { return name != "k8s.io/initial-events-end" })
	maps.DeleteFunc(object, func(name string, _ any) bool { return name != "kind" && name != "apiVersion" && name != "metadata" })
}

// hideCacheVersion replaces the resourceVersion of a list that may be served from the cache. The cache has all requested objects,
// but may lag behind writes of unrelated kinds.
func hideCacheVersion(op Operation, body any) {
	list, _ := body.(map[string]any)
	metadata, isMap := list["metadata"].(map[string]any)
	fromCache := strings.Contains(op.Query, "resourceVersion=") && !strings.Contains(op.Query, "Exact") && op.LastOperation == 0
	if isMap && fromCache && metadata["resourceVersion"] != nil && metadata["name"] == nil {
		metadata["resourceVersion"] = "<rv of the cache>"
	}
}

// decode decodes a JSON or YAML body. It returns text if it is neither.
func decode(text, contentType string) any {
	if strings.HasPrefix(contentType, "application/yaml") {
		if converted, err := yaml.YAMLToJSON([]byte(text)); err == nil {
			text = string(converted)
		}
	}
	decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return text
	}
	return value
}

// collect labels the UIDs, resourceVersions and generated names of the objects in a value.
func (n *normalizer) collect(where string, value any) {
	switch v := value.(type) {
	case []any:
		for i, item := range v {
			n.collect(fmt.Sprintf("%s/%d", where, i), item)
		}
	case map[string]any:
		if metadata, isObject := v["metadata"].(map[string]any); isObject && metadata["name"] != nil {
			n.collectMetadata(where, metadata)
		}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			n.collect(where+"/"+key, v[key])
		}
	}
}

func (n *normalizer) collectMetadata(where string, metadata map[string]any) {
	if uid := nested.String(metadata, "uid"); uid != "" && n.uids[uid] == "" {
		n.uids[uid] = "<uid " + where + ">"
	}
	text := nested.String(metadata, "resourceVersion")
	if version, err := strconv.ParseInt(text, 10, 64); err == nil && version > n.script.began && n.versions[version] == "" {
		n.versions[version] = "<rv " + where + ">"
		n.byKind[n.kind] = append(n.byKind[n.kind], version)
	}
}

// value normalises the JSON value of a key.
func (n *normalizer) value(key string, value any) any {
	switch v := value.(type) {
	case string:
		if key == "cells" && n.age.MatchString(v) {
			return "<age>"
		}
		return n.text(v)
	case json.Number:
		if strings.HasSuffix(strings.ToLower(key), "nodeport") {
			return "<port>"
		}
		return v
	case []any:
		for i, item := range v {
			v[i] = n.value(key, item)
		}
		if key == "items" || key == "rows" {
			n.sortGenerated(v)
		}
		return v
	case map[string]any:
		if metadata, isMap := v["metadata"].(map[string]any); isMap {
			n.metadata(metadata)
		}
		for k, item := range v {
			v[k] = n.value(k, item)
		}
		sortCauses(v)
		sortMessage(v)
	}
	return value
}

// sortMessage sorts the field errors in the message of a failed apply. structured-merge-diff finds them in map order, too.
func sortMessage(status map[string]any) {
	message := nested.String(status, "message")
	before, lines, found := strings.Cut(message, ": errors:\n")
	if !found {
		return
	}
	sorted := strings.Split(lines, "\n")
	slices.Sort(sorted)
	status["message"] = before + ": errors:\n" + strings.Join(sorted, "\n")
}

// sortCauses makes the causes of a Status a sorted set and removes them from its message: the API server finds them in map order, and
// names a cause twice if two of its validations find it.
func sortCauses(status map[string]any) {
	details := nested.Map(status, "details")
	causes := nested.Slice(details, "causes")
	if len(causes) == 0 {
		return
	}
	sortByText(causes)
	details["causes"] = slices.CompactFunc(causes, func(a, b any) bool { return reflect.DeepEqual(a, b) })
	if message, isText := status["message"].(string); isText {
		if before, _, found := strings.Cut(message, " is invalid: "); found {
			status["message"] = before + " is invalid: <causes>"
		}
	}
}

func sortByText(items []any) {
	slices.SortStableFunc(items, func(a, b any) int { return strings.Compare(short(a), short(b)) })
}

func (n *normalizer) metadata(metadata map[string]any) {
	if token := nested.String(metadata, "continue"); token != "" {
		metadata["continue"] = "<continue>"
	}
	if fields, isList := metadata["managedFields"].([]any); isList {
		sortFields(fields)
	}
	text := nested.String(metadata, "resourceVersion")
	version, err := strconv.ParseInt(text, 10, 64)
	if err != nil || version == 0 {
		return
	}
	metadata["resourceVersion"] = n.label(n.sorted, version)
	if metadata["name"] == nil { // of a list: unrelated objects raise it, too
		metadata["resourceVersion"] = n.label(n.byKind[n.kind], version)
	}
	if metadata["name"] == nil && metadata["annotations"] != nil {
		metadata["resourceVersion"] = "<rv bookmark>" // may be raised by any later write
	}
}

// sortFields sorts managed fields by manager. The server first sorts by time, in whole seconds.
func sortFields(fields []any) {
	key := func(item any) string {
		entry, _ := item.(map[string]any)
		return fmt.Sprint(entry["manager"], entry["operation"], entry["apiVersion"], entry["subresource"])
	}
	slices.SortStableFunc(fields, func(a, b any) int { return strings.Compare(key(a), key(b)) })
}

// label returns the label of the greatest resourceVersion of an object <= version.
func (n *normalizer) label(sorted []int64, version int64) string {
	i := sort.Search(len(sorted), func(i int) bool { return sorted[i] > version })
	if i == 0 {
		return "<rv before>"
	}
	return n.versions[sorted[i-1]]
}

// sortGenerated sorts a list with generated names. Their order is random.
func (n *normalizer) sortGenerated(items []any) {
	text := func(item any) string { encoded, _ := json.Marshal(item); return string(encoded) }
	if slices.ContainsFunc(items, func(item any) bool { return strings.Contains(text(item), `\u003cgenerated\u003e`) }) {
		slices.SortFunc(items, func(a, b any) int { return strings.Compare(text(a), text(b)) })
	}
}

// dump normalises a quoted JSON document in a text. It also sorts the fields: they are in the order of the Go struct if a patch
// changes nothing.
func (n *normalizer) dump(text string) string {
	const marker = `Invalid value: `
	before, rest, found := strings.Cut(text, marker)
	quoted, err := strconv.QuotedPrefix(rest)
	if !found || err != nil {
		return text
	}
	document, _ := strconv.Unquote(quoted)
	value, isMap := decode(document, "").(map[string]any)
	if !isMap {
		return text
	}
	sorted, _ := json.Marshal(n.value("", value))
	return before + marker + string(sorted) + rest[len(quoted):]
}

func (n *normalizer) text(text string) string {
	text = n.dump(text)
	text = n.generated.ReplaceAllString(text, "generated-<generated>")
	text = strings.ReplaceAll(text, n.script.namespace, "NS")
	text = strings.ReplaceAll(text, n.script.prefix, "P")
	text = n.uuid.ReplaceAllStringFunc(text, func(uid string) string { return orElse(n.uids[uid], "<uid>") })
	text = n.time.ReplaceAllString(text, "<time>")
	text = n.address.ReplaceAllString(text, "<ip>")
	text = n.untyped.ReplaceAllString(text, "$1: <fields>") // found in map order, and incomplete
	text = n.nodePort.ReplaceAllString(text, ":<port>/")
	text = n.tooOld.ReplaceAllString(text, "$1: <rv>")
	return n.versionInText.ReplaceAllStringFunc(text, func(match string) string {
		parts := n.versionInText.FindStringSubmatch(match)
		version, _ := strconv.ParseInt(parts[2], 10, 64)
		return parts[1] + n.label(n.sorted, version)
	})
}
