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
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/atomicfile"
)

const (
	savedKind = "anykind discovery snapshot"
	// savedFormat is incremented if older versions of this package would misread a file. New optional fields do not count.
	savedFormat = 3

	checksumPrefix = "sha256:"
)

// emptyChecksum is the placeholder in the checksum field during computation.
var emptyChecksum = checksumPrefix + strings.Repeat("0", 2*sha256.Size)

// Save writes the snapshot to a file for [Load]. The file is indented JSON with a checksum. Equal snapshots produce equal
// files. The file is replaced atomically: with an error the old file is left unchanged. Version errors are saved as text. A
// resource without a kind is saved by its subresources. The umask determines the file's permissions.
func (s *Snapshot) Save(path string) error {
	data, err := encodeSaved(s)
	if err == nil {
		err = atomicfile.Write(path, data, 0o644, nil)
	}
	if err != nil {
		return fmt.Errorf("save snapshot %s: %w", path, err)
	}
	return nil
}

// Load reads a file written by [Snapshot.Save]. It rejects damaged files, edits beyond white space, and files with a different
// format version.
func Load(path string) (*Snapshot, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("load snapshot: %w", err)
	}
	snapshot, err := decodeSaved(data)
	if err != nil {
		return nil, fmt.Errorf("load snapshot %s: %w", path, err)
	}
	return snapshot, nil
}

// encodeSaved returns the content of a file. The checksum covers the compact JSON with emptyChecksum in place of the checksum.
// Only white space may change, for example line ends in version control.
func encodeSaved(s *Snapshot) ([]byte, error) {
	saved := savedOf(s)
	saved.Checksum = emptyChecksum
	compact, err := json.Marshal(saved)
	if err != nil {
		return nil, err
	}
	saved.Checksum = checksumOf(compact)
	data, err := json.MarshalIndent(saved, "", "  ")
	return append(data, '\n'), err
}

func checksumOf(compact []byte) string {
	return fmt.Sprintf("%s%x", checksumPrefix, sha256.Sum256(compact))
}

// validateChecksum compares the checksum of data with sum, the checksum stored in data.
func validateChecksum(data []byte, sum string) error {
	var compact bytes.Buffer
	if err := json.Compact(&compact, data); err != nil {
		return err
	}
	blank := bytes.Replace(compact.Bytes(), []byte(sum), []byte(emptyChecksum), 1)
	if len(sum) != len(emptyChecksum) || checksumOf(blank) != sum {
		return errors.New("content does not match checksum")
	}
	return nil
}

func decodeSaved(data []byte) (*Snapshot, error) {
	var head savedHead
	if err := json.Unmarshal(data, &head); err != nil {
		return nil, fmt.Errorf("not a saved snapshot: %w", err)
	}
	switch {
	case head.Kind != savedKind:
		return nil, fmt.Errorf("not a saved snapshot: kind is %q, not %q", head.Kind, savedKind)
	case head.Format > savedFormat:
		return nil, fmt.Errorf("format %d is newer than %d (update anykind, or save the snapshot again)", head.Format, savedFormat)
	case head.Format < savedFormat:
		return nil, fmt.Errorf("format %d is older than %d (save the snapshot again)", head.Format, savedFormat)
	}
	snapshot, err := decodeVerified(data, head.Checksum)
	if err != nil {
		return nil, fmt.Errorf("damaged: %w", err)
	}
	return snapshot, nil
}

func decodeVerified(data []byte, checksum string) (*Snapshot, error) {
	if err := validateChecksum(data, checksum); err != nil {
		return nil, err
	}
	var saved savedSnapshot
	if err := json.Unmarshal(data, &saved); err != nil {
		return nil, err
	}
	snapshot := saved.snapshot()
	for _, removed := range snapshot.Removed {
		gvr := removed.Resource.GVR
		if err := cmp.Or(validateResource(removed.Resource), validateGroup(gvr.Group), validateVersion(gvr.Version)); err != nil {
			return nil, fmt.Errorf("removed: %w", err)
		}
	}
	return snapshot, validateGroups(snapshot.Groups)
}

// The types of a saved file are separate from Snapshot's types: a change of Snapshot must not change the format by accident.
// Resources have the format of legacy discovery.

type savedHead struct {
	Kind     string `json:"kind"`
	Format   int    `json:"format"`
	Checksum string `json:"checksum"`
}

type savedSnapshot struct {
	savedHead
	TakenAt    time.Time      `json:"taken"`
	Aggregated bool           `json:"aggregated"`
	Groups     []savedGroup   `json:"groups"`
	Removed    []savedRemoved `json:"removed,omitempty"`
	Rejected   []string       `json:"rejected,omitempty"`
}

type savedGroup struct {
	Name     string         `json:"name"`
	Versions []savedVersion `json:"versions"`
}

type savedVersion struct {
	Name      string               `json:"name"`
	Stale     bool                 `json:"stale,omitempty"`
	Error     string               `json:"error,omitempty"`
	Resources []metav1.APIResource `json:"resources"`
}

type savedRemoved struct {
	DetectedAt time.Time            `json:"detected"`
	Group      string               `json:"group"`
	Version    string               `json:"version"`
	Resources  []metav1.APIResource `json:"resources"` // one resource and its subresources
}

func savedOf(s *Snapshot) *savedSnapshot {
	saved := &savedSnapshot{
		savedHead: savedHead{Kind: savedKind, Format: savedFormat},
		TakenAt:   s.TakenAt.UTC(), Aggregated: s.Aggregated, Groups: []savedGroup{},
	}
	for _, group := range s.Groups {
		item := savedGroup{Name: group.Name, Versions: []savedVersion{}}
		for _, v := range group.Versions {
			gv := schema.GroupVersion{Group: group.Name, Version: v.Name}
			item.Versions = append(item.Versions, savedVersion{
				Name: v.Name, Stale: v.Stale, Error: errorText(v.Err), Resources: entriesOf(gv, v.Resources),
			})
		}
		saved.Groups = append(saved.Groups, item)
	}
	for _, removed := range s.Removed {
		gv := removed.Resource.GVR.GroupVersion()
		saved.Removed = append(saved.Removed, savedRemoved{
			DetectedAt: removed.DetectedAt.UTC(), Group: gv.Group, Version: gv.Version,
			Resources: entriesOf(gv, []*Resource{removed.Resource}),
		})
	}
	for _, err := range s.Rejected {
		saved.Rejected = append(saved.Rejected, err.Error())
	}
	return saved
}

func (s *savedSnapshot) snapshot() *Snapshot {
	snapshot := &Snapshot{TakenAt: s.TakenAt, Aggregated: s.Aggregated}
	for _, g := range s.Groups {
		group := Group{Name: g.Name}
		for _, v := range g.Versions {
			gv := schema.GroupVersion{Group: g.Name, Version: v.Name}
			version := Version{Name: v.Name, Stale: v.Stale, Resources: resourcesOf(gv, v.Resources)}
			if v.Error != "" {
				version.Err = errors.New(v.Error)
			}
			group.Versions = append(group.Versions, version)
		}
		snapshot.Groups = append(snapshot.Groups, group)
	}
	for _, removed := range s.Removed {
		for _, resource := range resourcesOf(schema.GroupVersion{Group: removed.Group, Version: removed.Version}, removed.Resources) {
			snapshot.Removed = append(snapshot.Removed, RemovedResource{Resource: resource, DetectedAt: removed.DetectedAt})
		}
	}
	for _, text := range s.Rejected {
		snapshot.Rejected = append(snapshot.Rejected, errors.New(text))
	}
	return snapshot
}
