// Package kuberc applies kubectl's preferences file, ~/.kube/kuberc, to command lines: aliases, default flags and the policy of credential
// plugins. It implements the command kuberc.
package kuberc

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"
)

// Preference is the content of the file.
type Preference struct {
	Kind       string `json:"kind,omitempty"`
	APIVersion string `json:"apiVersion,omitempty"`

	Defaults                  []Defaults  `json:"defaults"`
	Aliases                   []Alias     `json:"aliases"`
	CredentialPluginPolicy    string      `json:"credentialPluginPolicy,omitempty"`
	CredentialPluginAllowlist []Allowance `json:"credentialPluginAllowlist,omitempty"`
}

// Defaults are defaults of a command's flags.
type Defaults struct {
	Command string   `json:"command"`
	Options []Option `json:"options"`
}

// Alias is a name for a command with flags and arguments.
type Alias struct {
	Name    string `json:"name"`
	Command string `json:"command"`
	// PrependArgs follow the name, AppendArgs the user's arguments.
	PrependArgs []string `json:"prependArgs,omitempty"`
	AppendArgs  []string `json:"appendArgs,omitempty"`
	Options     []Option `json:"options,omitempty"`
}

// Option is the default of a flag. Name has no dashes.
type Option struct {
	Name    string `json:"name"`
	Default string `json:"default"`
}

// Allowance permits a credential plugin. Name is the deprecated form of Command.
type Allowance struct {
	Name    string `json:"name,omitempty"`
	Command string `json:"command,omitempty"`
}

const (
	group       = "kubectl.config.k8s.io"
	v1beta1     = group + "/v1beta1"
	v1alpha1    = group + "/v1alpha1"
	kind        = "Preference"
	environment = "KUBERC"
	off         = "off"
)

// errOff is returned for --kuberc together with KUBERC=off.
var errOff = errors.New("disabling kuberc via KUBERC=off and passing kuberc flag are mutually exclusive")

// path returns the path of the file: that of the flag, of KUBERC, or ~/.kube/kuberc. explicit is set for a path of the user. The path is ""
// with KUBERC=off.
func path(flag string) (file string, explicit bool, err error) {
	env := os.Getenv(environment)
	if env == off {
		if flag != "" {
			return "", false, errOff
		}
		return "", false, nil
	}
	if named := cmp.Or(flag, env); named != "" {
		return named, true, nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", false, nil //nolint:nilerr // without a home there is no file, as for kubectl
	}
	return filepath.Join(home, ".kube", "kuberc"), false, nil
}

// load returns the preferences of the flag's file. They are nil without a file, and for a broken file that the user did not name: warnf
// reports it.
func load(flag string, warnf func(format string, args ...any)) (*Preference, error) {
	file, explicit, err := path(flag)
	if err != nil {
		return nil, fmt.Errorf("kuberc error %w", err)
	}
	if file == "" {
		return nil, nil
	}
	preference, err := decode(file, warnf)
	switch {
	case err == nil:
		return preference, preference.validate()
	case explicit:
		return nil, fmt.Errorf("kuberc error kuberc: %w", err)
	case !errors.Is(err, fs.ErrNotExist):
		warnf("kuberc: no preferences loaded from %s: %v", file, err)
	}
	return nil, nil
}

// decode returns the first document with preferences in a supported version, or nil for an empty file. Unknown fields are reported.
func decode(file string, warnf func(format string, args ...any)) (*Preference, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	isEmpty := true
	for _, document := range bytes.Split(append([]byte("\n"), data...), []byte("\n---")) {
		if len(bytes.TrimSpace(document)) == 0 {
			continue
		}
		isEmpty = false
		preference, strictErr := decodeDocument(document)
		if preference == nil {
			continue
		}
		if strictErr != nil {
			warnf("kuberc: ignoring strict decoding error in %s: %v", file, strictErr)
		}
		return preference, nil
	}
	if isEmpty {
		return nil, nil
	}
	return nil, fmt.Errorf("no valid preferences found in %s", file)
}

// decodeDocument returns nil for a document of another kind. strict is set for unknown and duplicate fields.
func decodeDocument(document []byte) (preference *Preference, strict error) {
	var header struct{ Kind, APIVersion string }
	if yaml.Unmarshal(document, &header) != nil || header.Kind != kind {
		return nil, nil //nolint:nilerr // a document of another kind
	}
	switch header.APIVersion {
	case v1beta1:
		preference = &Preference{}
		strict = decodeInto(document, preference)
	case v1alpha1:
		old := &alphaPreference{}
		strict = decodeInto(document, old)
		preference = old.convert()
	default:
		return nil, nil
	}
	if strict != nil && yaml.Unmarshal(document, &Preference{}) != nil {
		return nil, strict
	}
	return preference, strict
}

// decodeInto decodes all known fields, and returns an error for others.
func decodeInto(document []byte, into any) error {
	strict := yaml.UnmarshalStrict(document, into)
	if strict != nil {
		_ = yaml.Unmarshal(document, into) // the strict error says why
	}
	return strict
}

// alphaPreference is the content of a file in version v1alpha1.
type alphaPreference struct {
	Kind       string `json:"kind,omitempty"`
	APIVersion string `json:"apiVersion,omitempty"`
	Defaults   []struct {
		Command string   `json:"command"`
		Options []Option `json:"flags"`
	} `json:"overrides"`
	Aliases []struct {
		Name        string   `json:"name"`
		Command     string   `json:"command"`
		PrependArgs []string `json:"prependArgs,omitempty"`
		AppendArgs  []string `json:"appendArgs,omitempty"`
		Options     []Option `json:"flags,omitempty"`
	} `json:"aliases"`
}

func (a *alphaPreference) convert() *Preference {
	p := &Preference{Kind: a.Kind, APIVersion: v1beta1}
	for _, d := range a.Defaults {
		p.Defaults = append(p.Defaults, Defaults(d))
	}
	for _, alias := range a.Aliases {
		p.Aliases = append(p.Aliases, Alias(alias))
	}
	return p
}
