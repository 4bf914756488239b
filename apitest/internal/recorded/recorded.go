// Package recorded has data of a Kubernetes version: the documents of a real API server without CustomResourceDefinitions, and the
// Go types and Protobuf messages of its built-in kinds. The program in record writes it. It is decoded once per process, at first
// use.
package recorded

import (
	"bytes"
	"compress/gzip"
	_ "embed" // resources.json, columns.json.gz, types.txt.gz, messages.txt.gz
	"encoding/json"
	"fmt"
	"io"
	"sync"
)

//go:embed resources.json
var resourcesJSON []byte

//go:embed columns.json.gz
var columnsJSON []byte

//go:embed types.txt.gz
var typesText []byte

//go:embed messages.txt.gz
var messagesText []byte

// ReadTypes returns the Go types of the built-in kinds as text; package builtin parses it.
func ReadTypes() (io.Reader, error) { return gzip.NewReader(bytes.NewReader(typesText)) }

// ReadMessages returns the Protobuf messages of the built-in kinds as text; package protobuf parses it.
func ReadMessages() (io.Reader, error) { return gzip.NewReader(bytes.NewReader(messagesText)) }

// ReadGroups returns the content of resources.json. It is read-only.
var ReadGroups = sync.OnceValues(func() (*Groups, error) {
	all := &Groups{}
	if err := json.Unmarshal(resourcesJSON, all); err != nil {
		return nil, fmt.Errorf("decode the recorded resources: %w", err)
	}
	return all, nil
})

// ReadColumns returns the content of columns.json.gz. It is read-only.
var ReadColumns = sync.OnceValues(func() (Columns, error) {
	reader, err := gzip.NewReader(bytes.NewReader(columnsJSON))
	if err != nil {
		return nil, fmt.Errorf("decode the recorded columns: %w", err)
	}
	var all Columns
	if err := json.NewDecoder(reader).Decode(&all); err != nil {
		return nil, fmt.Errorf("decode the recorded columns: %w", err)
	}
	return all, nil
})

// Groups is the content of resources.json: the built-in groups in the order of discovery, with "" first.
type Groups struct {
	Version map[string]string `json:"version"` // the response to /version
	Groups  []Group           `json:"groups"`
}

// Group is a group with its versions, the preferred version first. Groups are in discovery by descending Priority.
type Group struct {
	Name     string    `json:"name"`
	Priority int       `json:"priority"`
	Versions []Version `json:"versions"`
}

// Version is a served version of a group.
type Version struct {
	Name      string     `json:"name"`
	Priority  int        `json:"priority"`
	Resources []Resource `json:"resources"`
}

// Resource is a served version of a resource.
type Resource struct {
	Plural             string        `json:"plural"`
	Singular           string        `json:"singular"`
	Kind               string        `json:"kind"`
	KindGroup          string        `json:"kindGroup,omitempty"`   // of the objects, if their group or version
	KindVersion        string        `json:"kindVersion,omitempty"` // differs from the resource's
	ListKind           string        `json:"listKind,omitempty"`
	Namespaced         bool          `json:"namespaced,omitempty"`
	ShortNames         []string      `json:"shortNames,omitempty"`
	Categories         []string      `json:"categories,omitempty"`
	Verbs              []string      `json:"verbs"`
	StorageVersion     string        `json:"storageVersion,omitempty"`
	StorageVersionHash string        `json:"storageVersionHash,omitempty"`
	Subresources       []Subresource `json:"subresources,omitempty"`
	FieldSelectors     []string      `json:"fieldSelectors,omitempty"` // besides metadata.name and metadata.namespace
}

// Subresource is a subresource of a resource. Group and Version are empty if they equal the resource's.
type Subresource struct {
	Name    string   `json:"name"`
	Group   string   `json:"group,omitempty"`
	Version string   `json:"version,omitempty"`
	Kind    string   `json:"kind"`
	Verbs   []string `json:"verbs"`
}

// Column is a column of a resource's tables. JSONPath is set for a printer column of a CustomResourceDefinition only.
type Column struct {
	Name        string `json:"name"`
	Type        string `json:"type"`
	Format      string `json:"format,omitempty"`
	Description string `json:"description,omitempty"`
	Priority    int32  `json:"priority,omitempty"`
	JSONPath    string `json:"-"` // without braces
}

// Columns is the content of columns.json.gz: the Table columns of each resource, by the path of its list, such as
// "/apis/apps/v1/deployments".
type Columns map[string][]Column
