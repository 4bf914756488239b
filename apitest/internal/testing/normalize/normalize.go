// Package normalize makes responses of different API servers comparable: UIDs, resourceVersions and times become tokens.
package normalize

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/anykind/anykind/apitest/internal/nested"
)

// Normalizer replaces values specific to a run of requests. UIDs and resourceVersions are numbered by first occurrence, so equal
// values get equal tokens. The resourceVersions of lists all get the same token, because every write to the server changes them, unless
// one is older than a resourceVersion before. All times get the same token. Names from generateName lose their random suffix. Managed
// fields and the causes of errors are sorted. Use a single Normalizer for all responses of a run, in order.
type Normalizer struct {
	tokens   map[string]string // by value
	counts   map[string]int    // by kind of token
	newest   int               // the largest resourceVersion of an object
	replaced []string          // pairs for strings.NewReplacer
}

// listToken stands for the resourceVersion of a list.
const listToken = "LIST"

// New returns a Normalizer. It also replaces fixed values, such as the name of a namespace, by tokens: value, token, ….
func New(fixed ...string) *Normalizer {
	return &Normalizer{tokens: map[string]string{}, counts: map[string]int{}, replaced: fixed}
}

var (
	timePattern = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)`)
	uidPattern  = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
)

// Value returns a copy of a decoded JSON value with tokens.
func (n *Normalizer) Value(value any) any { return n.value("", value) }

func (n *Normalizer) value(name string, value any) any {
	switch value := value.(type) {
	case map[string]any:
		return n.object(value)
	case []any:
		items := make([]any, len(value))
		for i, item := range value {
			items[i] = n.value("", item)
		}
		return items
	case string:
		if name == "resourceVersion" && value != "" && value != listToken {
			version, _ := strconv.Atoi(value)
			n.newest = max(n.newest, version)
			return n.token("version", value)
		}
		return n.Text(value)
	}
	return value
}

func (n *Normalizer) object(obj map[string]any) map[string]any {
	base := nested.String(obj, "generateName")
	if name := nested.String(obj, "name"); base != "" && strings.HasPrefix(name, base) && len(name) > len(base) {
		n.tokens[name] = base + "*"
	}
	obj = n.withListToken(obj)
	result := make(map[string]any, len(obj))
	for _, name := range slices.Sorted(maps.Keys(obj)) { // sorted for the numbers of tokens
		value := n.value(name, obj[name])
		if items, ok := value.([]any); ok && (name == "managedFields" || name == "causes") {
			sortItems(items)
		}
		result[n.Text(name)] = value
	}
	return result
}

// withListToken returns an object, or a list with a token in place of its resourceVersion. An older resourceVersion stays.
func (n *Normalizer) withListToken(obj map[string]any) map[string]any {
	_, isList := obj["items"].([]any)
	version, err := strconv.Atoi(nested.String(obj, "metadata", "resourceVersion"))
	if !isList || err != nil || version < n.newest {
		return obj
	}
	metadata := maps.Clone(nested.Map(obj, "metadata"))
	metadata["resourceVersion"] = listToken
	obj = maps.Clone(obj)
	obj["metadata"] = metadata
	return obj
}

// sortItems sorts managed fields, sorted by time on a server, and the unordered causes of an error.
func sortItems(items []any) {
	slices.SortStableFunc(items, func(a, b any) int { return cmp.Compare(show(a), show(b)) })
}

func (n *Normalizer) token(kind, value string) string {
	if token, ok := n.tokens[value]; ok {
		return token
	}
	n.counts[kind]++
	token := fmt.Sprintf("%s-%d", kind, n.counts[kind])
	n.tokens[value] = token
	return token
}

// Text returns a text with tokens. resourceVersions are replaced only if they occurred in objects before.
func (n *Normalizer) Text(text string) string {
	if token, ok := n.tokens[text]; ok {
		return token
	}
	if len(n.replaced) > 0 {
		text = strings.NewReplacer(n.replaced...).Replace(text)
	}
	text = timePattern.ReplaceAllString(text, "TIME")
	text = uidPattern.ReplaceAllStringFunc(text, func(uid string) string { return n.token("uid", uid) })
	for value, token := range n.tokens {
		if strings.HasSuffix(token, "*") {
			text = strings.ReplaceAll(text, value, token)
		}
		if strings.HasPrefix(token, "version-") {
			for _, around := range [][2]string{{"(", ")"}, {": ", ","}, {`"`, `"`}} {
				text = strings.ReplaceAll(text, around[0]+value+around[1], around[0]+token+around[1])
			}
		}
	}
	return text
}
