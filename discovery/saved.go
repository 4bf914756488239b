package discovery

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"
)

const (
	savedKind = "anykind discovery snapshot"
	// savedFormat goes up when a reader of the format before would misunderstand a file; a new field that it may ignore
	// is no reason.
	savedFormat = 1
)

// Save writes the snapshot to a file that [Load] reads without a server. The file is JSON, the same for the same
// snapshot, and indented, so that versions of it compare well. It is replaced as a whole or, with an error, left as it
// was. The errors of versions are kept as text.
func (s *Snapshot) Save(path string) error {
	data, err := json.MarshalIndent(savedOf(s), "", "  ")
	if err == nil {
		err = replaceFile(path, append(data, '\n'), 0o644, time.Time{})
	}
	if err != nil {
		return fmt.Errorf("save the snapshot as %s: %w", path, err)
	}
	return nil
}

// Load reads what [Snapshot.Save] wrote. It refuses what is no snapshot, is damaged, or was written in the format of a
// later version of this package.
func Load(path string) (*Snapshot, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("load a snapshot: %w", err)
	}
	snapshot, err := decodeSaved(data)
	if err != nil {
		return nil, fmt.Errorf("load a snapshot: %s: %w", path, err)
	}
	return snapshot, nil
}

func decodeSaved(data []byte) (*Snapshot, error) {
	var head savedHead
	if err := json.Unmarshal(data, &head); err != nil {
		return nil, fmt.Errorf("it is no saved snapshot: %w", err)
	}
	switch {
	case head.Kind != savedKind:
		return nil, fmt.Errorf("it is no saved snapshot: its kind is %q, not %q", head.Kind, savedKind)
	case head.Format > savedFormat:
		return nil, fmt.Errorf("it has format %d and this version of anykind reads up to %d: update it, or save the snapshot again",
			head.Format, savedFormat)
	case head.Format < 1:
		return nil, fmt.Errorf("it is damaged: its format is %d", head.Format)
	}
	var saved savedSnapshot
	if err := json.Unmarshal(data, &saved); err != nil {
		return nil, fmt.Errorf("it is damaged: %w", err)
	}
	snapshot := saved.snapshot()
	for _, removed := range snapshot.Removed {
		if removed.Resource.GVR.Resource == "" {
			return nil, errors.New("it is damaged: a removed resource has no name")
		}
	}
	if err := checkNames(snapshot.Groups); err != nil {
		return nil, fmt.Errorf("it is damaged: %w", err)
	}
	return snapshot, nil
}
