package managedfields

import (
	"slices"
)

// Migration moves fields of several managers to the Apply entry of a manager.
//
// An apply removes the fields of its manager's Apply entry that the applied object lacks, except fields of further managers. It never
// removes fields because of an Update entry.
//
// The API server has a single Apply entry for a manager and a subresource. A second entry, in a different version, replaces the first.
// Therefore fields of several versions are united in a single version. A field moves if its path and value are equal in both versions of
// the object, and stays in its entry if they differ. The chosen version has the fewest staying fields. The server converts the entry
// when the manager applies in a different version.
type Migration struct {
	// Manager receives the fields, and applies in APIVersion.
	Manager, APIVersion string
	// Moves selects entries. It is not called with the Apply entry of Manager.
	Moves func(Entry) bool
	// Object returns the object in a version, and nil if the version is not served. It is called only if the version of an entry is not
	// APIVersion.
	Object func(apiVersion string) (map[string]any, error)
}

// Result is the result of a [Migration].
type Result struct {
	// Entries are the new managedFields.
	Entries []Entry
	// Moved are the previous entries of moved fields.
	Moved []Entry
	// Left are the entries of staying fields. Entries contains them.
	Left []Entry
}

// Migrate returns the new entries. Without a field to move, Moved is empty and Entries are the given ones.
func (m Migration) Migrate(entries []Entry) (Result, error) {
	result := Result{Entries: entries}
	for _, subresource := range m.subresources(entries) {
		if err := m.migrate(&result, subresource); err != nil {
			return Result{}, err
		}
	}
	return result, nil
}

// subresources returns the subresources of target entries.
func (m Migration) subresources(entries []Entry) []string {
	var all []string
	for _, e := range entries {
		if subresource := targetSubresource(e); m.isSource(e) && !slices.Contains(all, subresource) {
			all = append(all, subresource)
		}
	}
	return all
}

// targetSubresource returns the subresource of the entry that receives the fields. An entry of scale has paths of the object itself, and
// moves to the entry of the object.
func targetSubresource(e Entry) string {
	if e.Subresource == "scale" {
		return ""
	}
	return e.Subresource
}

func (m Migration) isTarget(e Entry) bool {
	return e.Manager == m.Manager && e.Operation == Apply && e.Subresource == targetSubresource(e)
}

func (m Migration) isSource(e Entry) bool { return !m.isTarget(e) && len(e.Fields) > 0 && m.Moves(e) }

// migrate moves the fields of a target entry.
func (m Migration) migrate(result *Result, subresource string) error {
	var target Entry
	var sources []Entry
	var rest []Entry
	for _, e := range result.Entries {
		switch {
		case targetSubresource(e) != subresource:
			rest = append(rest, e)
		case m.isTarget(e):
			target = e
		case m.isSource(e):
			sources = append(sources, e)
		default:
			rest = append(rest, e)
		}
	}
	combined, left, err := m.combineVersions(target, sources)
	if err != nil {
		return err
	}
	moved := slices.DeleteFunc(slices.Clone(sources), func(e Entry) bool {
		return slices.ContainsFunc(left, func(l Entry) bool { return isSameEntry(e, l) && Contains(l.Fields, e.Fields) })
	})
	if len(moved) == 0 || len(combined.Fields) == 0 {
		result.Left = append(result.Left, left...)
		return nil
	}
	combined.Manager = m.Manager
	combined.Operation = Apply
	combined.Subresource = subresource
	combined.Time = target.Time
	for _, e := range moved {
		combined.Time = max(combined.Time, e.Time)
	}
	result.Moved = append(result.Moved, moved...)
	result.Left = append(result.Left, left...)
	result.Entries = slices.Concat([]Entry{combined}, rest, left)
	return nil
}

func isSameEntry(a, b Entry) bool {
	return a.Manager == b.Manager && a.Operation == b.Operation && a.APIVersion == b.APIVersion && a.Subresource == b.Subresource
}

// combineVersions unites the fields in the served version with the fewest staying fields. Between equal versions it prefers APIVersion,
// then the version of target.
func (m Migration) combineVersions(target Entry, sources []Entry) (best Entry, left []Entry, err error) {
	all := sources
	if len(target.Fields) > 0 {
		all = append([]Entry{target}, sources...)
	}
	versions := []string{m.APIVersion}
	for _, e := range all {
		if !slices.Contains(versions, e.APIVersion) {
			versions = append(versions, e.APIVersion)
		}
	}
	if len(versions) == 1 {
		combined, _, _ := unite(all, m.APIVersion, nil)
		return Entry{APIVersion: m.APIVersion, Fields: combined}, nil, nil
	}
	objects := map[string]map[string]any{}
	for _, version := range versions {
		if objects[version], err = m.Object(version); err != nil {
			return Entry{}, nil, err
		}
	}
	fewest := -1
	for _, version := range versions {
		if objects[version] == nil {
			continue
		}
		combined, remaining, count := unite(all, version, objects)
		loses := slices.ContainsFunc(remaining, m.isTarget)
		if !loses && (fewest < 0 || count < fewest) {
			best = Entry{APIVersion: version, Fields: combined}
			left = remaining
			fewest = count
		}
	}
	if fewest < 0 {
		left = sources
	}
	return best, left, nil
}

// unite returns the union of the fields in a version, and the entries of staying fields with their number. The server drops an entry of
// an unserved version at the next write. Its paths move unchanged, if the object has them.
func unite(entries []Entry, version string, objects map[string]map[string]any) (combined map[string]any, left []Entry, count int) {
	for _, e := range entries {
		same := e.Fields
		var different map[string]any
		if e.APIVersion != version {
			from := objects[e.APIVersion]
			if from == nil {
				from = objects[version]
			}
			same, different = split(e.Fields, from, objects[version])
		}
		combined = Union(combined, same)
		if len(different) > 0 {
			e.Fields = different
			left = append(left, e)
			count += len(Paths(different))
		}
	}
	return combined, left, count
}
