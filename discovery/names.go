package discovery

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/anykind/anykind/internal/sanitize"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
)

// maxName bounds every name that a server may give to a group, a resource, a kind or a category.
const maxName = validation.DNS1123SubdomainMaxLength

// maxText bounds what an error quotes of a server's text.
const maxText = 200

// quoted shows a name from a server in an error.
func quoted(name string) string { return fmt.Sprintf("%q", sanitize.Text(name, maxText)) }

// validateGroup checks the name of a group; "" is the core group.
func validateGroup(name string) error {
	if name == "" || len(validation.IsDNS1123Subdomain(name)) == 0 {
		return nil
	}
	return fmt.Errorf("invalid group name %s", quoted(name))
}

// validateVersion checks the name of a version. That of an aggregated API need not look like v1.
func validateVersion(name string) error {
	if isSegment(name) {
		return nil
	}
	return fmt.Errorf("invalid version name %s", quoted(name))
}

// validateResource checks every name of a resource: those that request paths are made of, and those that are only
// shown and compared.
func validateResource(r *Resource) error {
	if !isSegment(r.GVR.Resource) {
		return fmt.Errorf("invalid resource name %s", quoted(r.GVR.Resource))
	}
	err := cmp.Or(
		validateKind(r.GVK, r.GVR.Group), validateWord("singular", r.Singular), validateWord("hash", r.StorageVersionHash),
		validateWords("short name", r.ShortNames), validateWords("category", r.Categories), validateWords("verb", r.Verbs),
	)
	for i := 0; i < len(r.Subresources) && err == nil; i++ {
		err = validateSubresource(&r.Subresources[i], r.GVR.Group)
	}
	if err != nil {
		return fmt.Errorf("resource %s: %w", quoted(r.GVR.Resource), err)
	}
	return nil
}

func validateSubresource(s *Subresource, group string) error {
	for part := range strings.SplitSeq(s.Name, "/") { // some servers have subresources of subresources
		if !isSegment(part) {
			return fmt.Errorf("invalid subresource name %s", quoted(s.Name))
		}
	}
	if err := cmp.Or(validateKind(s.GVK, group), validateWords("verb", s.Verbs)); err != nil {
		return fmt.Errorf("subresource %s: %w", quoted(s.Name), err)
	}
	return nil
}

// validateKind checks a kind in a group, whose own name is checked elsewhere.
func validateKind(kind schema.GroupVersionKind, group string) error {
	if kind.Group != group {
		if err := validateGroup(kind.Group); err != nil {
			return err
		}
	}
	return cmp.Or(validateWord("kind", kind.Kind), validateWord("version", kind.Version))
}

func validateWords(what string, words []string) error {
	for _, word := range words {
		if err := validateWord(what, word); err != nil {
			return err
		}
	}
	return nil
}

func validateWord(what, word string) error {
	if isWord(word) {
		return nil
	}
	return fmt.Errorf("invalid %s %s", what, quoted(word))
}

// isSegment reports whether a name is one segment of a URL path, and nothing else in it: metrics APIs use any other
// character in the names of resources.
func isSegment(name string) bool {
	return name != "" && name != "." && name != ".." && isWord(name) && !strings.ContainsAny(name, `/\%?#`)
}

// isWord reports whether a name is short and printable, without white space.
func isWord(name string) bool {
	if len(name) > maxName {
		return false
	}
	for i, r := range name {
		if r < utf8.RuneSelf && '!' <= r && r <= '~' {
			continue
		}
		if r < utf8.RuneSelf || !unicode.IsPrint(r) || r == utf8.RuneError && !strings.HasPrefix(name[i:], "\uFFFD") {
			return false
		}
	}
	return true
}

// maxRejected bounds Snapshot.Rejected.
const maxRejected = 100

// rejectNames returns the groups and versions with names that can stand in a request path, each once, and the errors of
// the others.
func rejectNames(groups []Group) (kept []Group, rejected []error) {
	seen := map[string]bool{}
	kept = groups[:0]
	for _, group := range groups {
		err := validateGroup(group.Name)
		if err == nil && seen[group.Name] {
			err = fmt.Errorf("group %q: listed twice", group.Name)
		}
		if err != nil {
			rejected = append(rejected, err)
			continue
		}
		seen[group.Name] = true
		versions, some := rejectVersions(group.Versions)
		for _, err := range some {
			rejected = append(rejected, fmt.Errorf("group %q: %w", group.Name, err))
		}
		group.Versions = versions
		kept = append(kept, group)
	}
	return kept, rejected[:min(len(rejected), maxRejected)]
}

func rejectVersions(versions []Version) (kept []Version, rejected []error) {
	seen := map[string]bool{}
	kept = versions[:0]
	for _, version := range versions {
		err := validateVersion(version.Name)
		if err == nil && seen[version.Name] {
			err = fmt.Errorf("version %s: listed twice", version.Name)
		}
		if err != nil {
			rejected = append(rejected, err)
			continue
		}
		seen[version.Name] = true
		kept = append(kept, version)
	}
	return kept, rejected
}

// validateResources checks the names of a version's resources: an invalid one makes the whole version unreadable.
func validateResources(resources []*Resource) error {
	seen := make(map[string]bool, len(resources))
	for _, resource := range resources {
		if err := validateResource(resource); err != nil {
			return err
		}
		if seen[resource.GVR.Resource] {
			return fmt.Errorf("resource %q: listed twice", resource.GVR.Resource)
		}
		seen[resource.GVR.Resource] = true
	}
	return nil
}

// validateGroups checks everything that comes from a file.
func validateGroups(groups []Group) error {
	if _, rejected := rejectNames(slices.Clone(groups)); len(rejected) > 0 {
		return rejected[0]
	}
	for _, group := range groups {
		for _, version := range group.Versions {
			if err := validateResources(version.Resources); err != nil {
				return fmt.Errorf("group %q: version %s: %w", group.Name, version.Name, err)
			}
		}
	}
	return nil
}
