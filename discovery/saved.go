package discovery

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
)

const (
	savedKind = "anykind discovery snapshot"
	// savedFormat goes up when a reader of the format before would misunderstand a file; a new field that it may ignore
	// is no reason.
	savedFormat = 2
)

// Save writes the snapshot to a file that [Load] reads without a server. The file is JSON with a checksum, the same for
// the same snapshot, and indented, so that versions of it compare well. It is replaced as a whole or, with an error, left
// as it was. The errors of versions are kept as text. Who may read it is decided by the umask.
func (s *Snapshot) Save(path string) error {
	data, err := encodeSaved(s)
	if err == nil {
		err = replaceFile(path, data, writeOptions{mode: 0o644})
	}
	if err != nil {
		return fmt.Errorf("save the snapshot as %s: %w", path, err)
	}
	return nil
}

// Load reads what [Snapshot.Save] wrote. It rejects what is no snapshot, is damaged, changed by hand other than in its
// white space, or written in the format of another version of this package.
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

// encodeSaved writes the file. Its checksum is that of its JSON without white space in which the checksum is
// [noChecksum]; so white space may change, as version control changes line ends, and nothing else.
func encodeSaved(s *Snapshot) ([]byte, error) {
	saved := savedOf(s)
	saved.Checksum = noChecksum
	compact, err := json.Marshal(saved)
	if err != nil {
		return nil, err
	}
	saved.Checksum = checksumOf(compact)
	data, err := json.MarshalIndent(saved, "", "  ")
	return append(data, '\n'), err
}

const checksumPrefix = "sha256:"

// noChecksum stands in the place of the checksum while that is computed.
var noChecksum = checksumPrefix + strings.Repeat("0", 2*sha256.Size)

func checksumOf(compact []byte) string {
	return fmt.Sprintf("%s%x", checksumPrefix, sha256.Sum256(compact))
}

// validateChecksum checks a file whose checksum is said to be sum.
func validateChecksum(data []byte, sum string) error {
	var compact bytes.Buffer
	if err := json.Compact(&compact, data); err != nil {
		return err
	}
	blank := bytes.Replace(compact.Bytes(), []byte(sum), []byte(noChecksum), 1)
	if len(sum) != len(noChecksum) || checksumOf(blank) != sum {
		return errors.New("its content does not match its checksum")
	}
	return nil
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
	case head.Format < savedFormat:
		return nil, fmt.Errorf("it has format %d, which has no checksum: save the snapshot again", head.Format)
	}
	if err := validateChecksum(data, head.Checksum); err != nil {
		return nil, fmt.Errorf("it is damaged: %w", err)
	}
	var saved savedSnapshot
	if err := json.Unmarshal(data, &saved); err != nil {
		return nil, fmt.Errorf("it is damaged: %w", err)
	}
	snapshot := saved.snapshot()
	for _, removed := range snapshot.Removed {
		gvr := removed.Resource.GVR
		if err := cmp.Or(validateResource(removed.Resource), validateGroup(gvr.Group), validateVersion(gvr.Version)); err != nil {
			return nil, fmt.Errorf("it is damaged: removed: %w", err)
		}
	}
	if err := validateGroups(snapshot.Groups); err != nil {
		return nil, fmt.Errorf("it is damaged: %w", err)
	}
	return snapshot, nil
}
