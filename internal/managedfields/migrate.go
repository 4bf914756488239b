package managedfields

import (
	"slices"
)

// Migration moves fields of managers to the Apply entry of one manager.
//
// The API server removes a field that an Apply entry owns once its manager applies without it, unless a different manager owns the
// field, too. It never does so for an Update entry.
//
// The server knows one Apply entry for a manager and a subresource: of two in different versions, it drops one. Fields of several
// versions are therefore combined in one version. A field moves if it has the same path and value in both. Otherwise it stays with its
// entry. Of several versions, the one with the fewest such fields is chosen: the server converts the entry when the manager applies
// in a different version.
type Migration struct {
	// Manager receives the fields, and applies in APIVersion.
	Manager, APIVersion string
	// Moves selects entries. The Apply entry of Manager is not asked about.
	Moves func(Entry) bool
	// Object returns the object in a version, and nil if the version is not served. It is called only if an entry has a version other
	// than APIVersion.
	Object func(apiVersion string) (map[string]any, error)
}

// Result is the result of a [Migration].
type Result struct {
	// Entries are the new managedFields. They are never empty if Moved is not.
	Entries []Entry
	// Moved are the previous entries whose fields were moved, all or some of them.
	Moved []Entry
	// Left are entries with the remaining fields of selected entries. They are part of Entries.
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

// targetSubresource returns the subresource of the entry that receives the fields. The fields of scale are those of the object
// itself, in the version of the object: an apply of the object can remove them.
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

// migrate moves the fields of one target entry.
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

// combineVersions unites the fields in the served version that leaves the fewest fields. APIVersion wins a tie, then target's version.
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

// unite returns the union of the fields in a version, and the entries with the other fields. The server drops an entry in a version
// that it does not serve any more. The paths of such an entry are taken as they are, if the object has them.
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
			count += Count(different)
		}
	}
	return combined, left, count
}
