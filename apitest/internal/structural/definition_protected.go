package structural

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/apitest/internal/nested"
)

// validateStoredVersions rejects the removal of a version while status.storedVersions has it, and a storage version that is not there.
func validateStoredVersions(definition map[string]any) field.ErrorList {
	at := field.NewPath("status", "storedVersions")
	stored := nested.Strings(definition, "status", "storedVersions")
	if len(stored) == 0 {
		return field.ErrorList{field.Invalid(at, []string(nil), "must have at least one stored version")}
	}
	names := map[string]bool{}
	var errs field.ErrorList
	for _, version := range nested.Maps(definition, "spec", "versions") {
		name := nested.String(version, "name")
		names[name] = true
		if nested.Bool(version, "storage") && !slices.Contains(stored, name) {
			errs = append(errs, field.Invalid(at, stored, "must have the storage version "+name))
		}
	}
	for i, name := range stored {
		if !names[name] {
			errs = append(errs, field.Invalid(at.Index(i), name, fmt.Sprintf("missing from spec.versions; "+
				"%s was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in %[1]s "+
				"and removes %[1]s from status.storedVersions", name)))
		}
	}
	return errs
}

const approvalAnnotation = "api-approved.kubernetes.io"

// Approval is the state of a definition in a group of the Kubernetes community.
type Approval string

// The states of approval. The zero value is a group of others.
const (
	ApprovalMissing Approval = "missing"
	ApprovalInvalid Approval = "invalid"
	Unapproved      Approval = "unapproved"
	Approved        Approval = "approved"
)

// ApprovalOf returns the approval of a definition, and its annotation.
func ApprovalOf(definition map[string]any) (state Approval, annotation string) {
	group := nested.String(definition, "spec", "group")
	if group != "k8s.io" && group != "kubernetes.io" && !strings.HasSuffix(group, ".k8s.io") && !strings.HasSuffix(group, ".kubernetes.io") {
		return "", ""
	}
	annotation = nested.String(definition, "metadata", "annotations", approvalAnnotation)
	address, err := url.ParseRequestURI(annotation)
	switch {
	case annotation == "":
		return ApprovalMissing, ""
	case strings.HasPrefix(annotation, "unapproved"):
		return Unapproved, annotation
	case err == nil && address.Host != "" && address.Scheme != "":
		return Approved, annotation
	}
	return ApprovalInvalid, annotation
}

// validateApproval rejects a definition in a protected group without the annotation, unless the stored definition has the same state.
func validateApproval(definition, old map[string]any) field.ErrorList {
	const see = ", see https://github.com/kubernetes/enhancements/pull/1111"
	at := field.NewPath("metadata", "annotations").Key(approvalAnnotation)
	state, annotation := ApprovalOf(definition)
	if old != nil {
		if before, _ := ApprovalOf(old); before == state {
			return nil
		}
	}
	if state == ApprovalMissing {
		return field.ErrorList{field.Required(at, `protected groups must have approval annotation "`+approvalAnnotation+`"`+see)}
	}
	if state == ApprovalInvalid {
		return field.ErrorList{field.Invalid(at, annotation, `protected groups must have approval annotation "`+approvalAnnotation+
			`" with either a URL or a reason starting with "unapproved"`+see)}
	}
	return nil
}
