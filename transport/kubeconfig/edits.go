package kubeconfig

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	ky "sigs.k8s.io/yaml"
)

// edits records which parts of a document have been changed: entries of its three lists, and fields of its top level,
// which have no name.
type edits map[edit]bool

type edit struct{ field, name string }

// entryLists are the fields of a document whose entries have names.
var entryLists = [...]string{"clusters", "users", "contexts"}

func (e edits) entry(list, name string) { e[edit{list, name}] = true }

func (e edits) field(name string) { e[edit{field: name}] = true }

// checkRest returns an error unless everything that was not edited means the same in both documents. Editing one entry
// must not give another one its server or its token.
func (e edits) checkRest(before, after []byte) error {
	old, err := topOf(before)
	if err != nil {
		return err
	}
	now, err := topOf(after)
	if err != nil {
		return err
	}
	if len(old) == 0 { // an empty document gets apiVersion and kind
		return nil
	}
	for _, list := range entryLists {
		oldEntries, nowEntries := entriesOf(old[list]), entriesOf(now[list])
		for _, name := range namesIn(oldEntries, nowEntries) {
			if !e[edit{list, name}] && !reflect.DeepEqual(oldEntries[name], nowEntries[name]) {
				return fmt.Errorf("entry %q of %s: it was not to be changed, and the edit would change it "+
					"(edit the file by hand, and write out its aliases and merge keys)", name, list)
			}
		}
		delete(old, list)
		delete(now, list)
	}
	for _, field := range namesIn(old, now) {
		if !e[edit{field: field}] && !reflect.DeepEqual(old[field], now[field]) {
			return fmt.Errorf("field %q: it was not to be changed, and the edit would change it (edit the file by hand)", field)
		}
	}
	return nil
}

// topOf decodes a document as kubectl does, fields that nobody knows included.
func topOf(data []byte) (map[string]any, error) {
	asJSON, err := ky.YAMLToJSON(data)
	if err != nil {
		return nil, notYAML(data, err)
	}
	decoder := json.NewDecoder(bytes.NewReader(asJSON))
	decoder.UseNumber()
	var top map[string]any
	if err := decoder.Decode(&top); err != nil {
		return nil, notYAML(data, err)
	}
	return top, nil
}

// entriesOf returns a list's entries by their names. Parse has rejected lists where two have one name.
func entriesOf(list any) map[string]any {
	listed, _ := list.([]any)
	entries := make(map[string]any, len(listed))
	for _, entry := range listed {
		fields, _ := entry.(map[string]any)
		name, _ := fields["name"].(string)
		entries[name] = entry
	}
	return entries
}

func namesIn(a, b map[string]any) []string {
	all := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.Sort(all)
	return slices.Compact(all)
}
