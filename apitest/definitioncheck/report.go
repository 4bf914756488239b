package definitioncheck

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// Type is the type of a finding.
type Type string

// Types of findings of the definition.
const (
	// Rejected is an error of the API server, which does not accept the definition.
	Rejected              Type = "Rejected"
	ScopeChanged          Type = "ScopeChanged"
	NamesChanged          Type = "NamesChanged"
	VersionRemoved        Type = "VersionRemoved"
	VersionNotServed      Type = "VersionNotServed"
	StorageVersionChanged Type = "StorageVersionChanged"
	ConversionChanged     Type = "ConversionChanged"
	// PruningChanged is a change of spec.preserveUnknownFields.
	PruningChanged Type = "PruningChanged"
)

// Types of findings of objects.
const (
	// FieldLost is a field that clients of the version no longer read.
	FieldLost Type = "FieldLost"
	// FieldLostOnUpdate is a field of the stored object. An update without a change, in the version, removes it for clients of all
	// versions, because the schema of this version or of the storage version lacks it. Under the live definition it stays.
	FieldLostOnUpdate Type = "FieldLostOnUpdate"
	// FieldDefaulted is a new field with its default value.
	FieldDefaulted Type = "FieldDefaulted"
	// Invalid is an error of a creation of the same object. Updates may tolerate it as unchanged.
	Invalid Type = "Invalid"
	// NotUpdatable is an error of an update without a change.
	NotUpdatable Type = "NotUpdatable"
)

// Finding is a difference or an error of the definition, or of objects in a version.
type Finding struct {
	Type Type `json:"type"`
	// Version is the version in which the objects are read and written, "" for the definition as a whole.
	Version string `json:"version,omitempty"`
	// Path is the path of the field. Objects are grouped with "[*]" for each index.
	Path string `json:"path,omitempty"`
	// Message is the error's type and detail, including the rule, or the default value as JSON.
	Message string `json:"message,omitempty"`
	// Objects is the number of objects, and Examples are the first of these. Both are empty for a finding of the definition.
	Objects  int                    `json:"objects,omitempty"`
	Examples []types.NamespacedName `json:"examples,omitempty"`

	last int // number of the last counted object
}

// String returns a line: "v1: NotUpdatable spec.size: Invalid value: must be odd (2 objects: shop/a, shop/b)".
func (f *Finding) String() string {
	var b strings.Builder
	if f.Version != "" {
		b.WriteString(f.Version + ": ")
	}
	b.WriteString(string(f.Type))
	if f.Path != "" {
		b.WriteString(" " + f.Path)
	}
	if f.Message != "" {
		b.WriteString(": " + f.Message)
	}
	if f.Objects == 0 {
		return b.String()
	}
	names := make([]string, len(f.Examples))
	for i, key := range f.Examples {
		names[i] = strings.TrimPrefix(key.String(), "/")
	}
	if f.Objects > len(names) {
		names = append(names, "…")
	}
	fmt.Fprintf(&b, " (%d objects: %s)", f.Objects, strings.Join(names, ", "))
	return b.String()
}

// Report is the result of [Check].
type Report struct {
	// Name is the name of the definition. IsNew is set if the server has no definition of this name.
	Name  string `json:"name"`
	IsNew bool   `json:"isNew,omitempty"`
	// Objects is the number of checked objects.
	Objects int `json:"objects"`
	// Definition are the findings of the definition.
	Definition []*Finding `json:"definition,omitempty"`
	// Findings are the findings of objects, sorted by type, version and path. Omitted is the number of occurrences that exceed
	// [Options].MaxFindings.
	Findings []*Finding `json:"findings,omitempty"`
	Omitted  int        `json:"omitted,omitempty"`
	// NotChecked describes what may still differ or fail.
	NotChecked []string `json:"notChecked,omitempty"`
}

type groupKey struct {
	kind                   Type
	version, path, message string
}

// collector groups the findings of objects.
type collector struct {
	report                   *Report
	maxFindings, maxExamples int
	groups                   map[groupKey]*Finding
	object                   types.NamespacedName // the current one
	number                   int                  // of the current object
}

// next begins an object.
func (c *collector) next(object types.NamespacedName) {
	c.object = object
	c.number++
}

// add adds a finding of the current object.
func (c *collector) add(kind Type, version, path, message string) {
	if path == "<nil>" { // of an error of the whole object
		path = ""
	}
	key := groupKey{kind, version, withoutIndexes(path), withoutIndexes(message)}
	group := c.groups[key]
	if group == nil {
		if len(c.groups) >= c.maxFindings {
			c.report.Omitted++
			return
		}
		group = &Finding{Type: kind, Version: version, Path: key.path, Message: key.message}
		c.groups[key] = group
		c.report.Findings = append(c.report.Findings, group)
	}
	if group.last == c.number {
		return
	}
	group.last = c.number
	group.Objects++
	if len(group.Examples) < c.maxExamples {
		group.Examples = append(group.Examples, c.object)
	}
}

func (r *Report) sort() {
	slices.SortFunc(r.Findings, func(a, b *Finding) int {
		return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.Version, b.Version), cmp.Compare(a.Path, b.Path), cmp.Compare(a.Message, b.Message))
	})
}

// withoutIndexes replaces each index, "[3]", by "[*]".
func withoutIndexes(text string) string {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(text, "[")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		index, rest, closed := strings.Cut(after, "]")
		if closed && index != "" && strings.Trim(index, "0123456789") == "" {
			b.WriteString("[*]")
			text = rest
			continue
		}
		b.WriteString("[")
		text = after
	}
}
