package write

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	unstructuredv1 "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	maxGeneratedBase     = 58 // of a generated name, without its suffix
	generatedSuffix      = 5
	maxGeneratedAttempts = 8
)

// wipeSystemFields removes the metadata fields owned by the server.
func wipeSystemFields(obj *unstructuredv1.Unstructured) {
	for _, name := range []string{"creationTimestamp", "uid", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"} {
		unstructuredv1.RemoveNestedField(obj.Object, "metadata", name)
	}
}

// fillSystemFields sets the creationTimestamp and UID of a new object.
func (op *operation) fillSystemFields(obj *unstructuredv1.Unstructured) {
	obj.SetCreationTimestamp(metav1.NewTime(op.now().UTC().Truncate(time.Second)))
	obj.SetUID(op.random.uid())
}

func (w *Writer) generateName(base string) string {
	if len(base) > maxGeneratedBase {
		base = base[:maxGeneratedBase]
	}
	return base + w.random.suffix(generatedSuffix)
}

// displayName returns the name of an object, or its generateName.
func displayName(obj *unstructuredv1.Unstructured) string {
	if name := obj.GetName(); name != "" {
		return name
	}
	return obj.GetGenerateName()
}

// ensureNamespace sets the object's namespace to the request's, or rejects a different namespace.
func (op *operation) ensureNamespace(obj *unstructuredv1.Unstructured) error {
	want := op.objectNamespace()
	switch got := obj.GetNamespace(); {
	case got == want:
	case got == "", want == "":
		obj.SetNamespace(want)
	default:
		return apierrors.NewBadRequest(namespaceMismatch)
	}
	return nil
}

// checkName rejects an object with a name different from the request's.
func (op *operation) checkName(obj *unstructuredv1.Unstructured) error {
	name := obj.GetName()
	if name == "" {
		return apierrors.NewBadRequest("the name of the object (" + op.req.Name + " based on URL) was undeterminable: name must be provided")
	}
	if name != op.req.Name {
		return apierrors.NewBadRequest("the name of the object (" + name + ") does not match the name on the URL (" + op.req.Name + ")")
	}
	return nil
}

// dedupeOwners removes equal owner references and adds a warning. The warning's text depends on afterAdmission.
func (op *operation) dedupeOwners(obj *unstructuredv1.Unstructured, afterAdmission bool) {
	owners := obj.GetOwnerReferences()
	var unique []metav1.OwnerReference
	var duplicates []string
	for _, owner := range owners {
		if containsOwner(unique, owner) {
			duplicates = append(duplicates, string(owner.UID))
		} else {
			unique = append(unique, owner)
		}
	}
	if len(duplicates) == 0 {
		return
	}
	obj.SetOwnerReferences(unique)
	text := ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: "
	if afterAdmission {
		text = ".metadata.ownerReferences contains duplicate entries after mutating admission happens; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: "
	}
	op.warn(text + strings.Join(duplicates, ", "))
}

func containsOwner(owners []metav1.OwnerReference, owner metav1.OwnerReference) bool {
	for _, o := range owners {
		if equalBool(o.Controller, owner.Controller) && equalBool(o.BlockOwnerDeletion, owner.BlockOwnerDeletion) &&
			o.APIVersion == owner.APIVersion && o.Kind == owner.Kind && o.Name == owner.Name && o.UID == owner.UID {
			return true
		}
	}
	return false
}

func equalBool(a, b *bool) bool { return a == b || a != nil && b != nil && *a == *b }

func validatePathSegment(name string, prefix bool) []string {
	var texts []string
	if !prefix && (name == "." || name == "..") {
		return []string{fmt.Sprintf("may not be '%s'", name)}
	}
	for _, illegal := range []string{"/", "%"} {
		if strings.Contains(name, illegal) {
			texts = append(texts, fmt.Sprintf("may not contain '%s'", illegal))
		}
	}
	return texts
}

// keepSystemFields copies immutable metadata from old to an update.
func keepSystemFields(obj, old *unstructuredv1.Unstructured) {
	if obj.GetUID() == "" {
		obj.SetUID(old.GetUID())
	}
	if created := old.GetCreationTimestamp(); !created.IsZero() {
		obj.SetCreationTimestamp(created)
	}
	if deleted := old.GetDeletionTimestamp(); deleted != nil {
		obj.SetDeletionTimestamp(deleted)
	}
	if old.GetDeletionGracePeriodSeconds() != nil && obj.GetDeletionGracePeriodSeconds() == nil {
		obj.SetDeletionGracePeriodSeconds(old.GetDeletionGracePeriodSeconds())
	}
}

// setGeneration sets metadata.generation. Unlike SetGeneration, it removes the field for 0.
func setGeneration(obj *unstructuredv1.Unstructured, generation int64) {
	if generation == 0 {
		unstructuredv1.RemoveNestedField(obj.Object, "metadata", "generation")
		return
	}
	obj.SetGeneration(generation)
}

func (op *operation) validateMetadata(obj *unstructuredv1.Unstructured) field.ErrorList {
	return ownerTexts(validation.ValidateObjectMetaAccessor(obj, op.resource.Namespaced, validatePathSegment, field.NewPath("metadata")))
}

func validateMetadataUpdate(obj, old *unstructuredv1.Unstructured) field.ErrorList {
	return ownerTexts(validation.ValidateObjectMetaAccessorUpdate(obj, old, field.NewPath("metadata")))
}

var ownerIndex = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^metadata\.ownerReferences\[\d+\]\.(\w+)$`) })

// ownerTexts replaces the library's texts of owner reference errors. The API server has the texts of an earlier release.
func ownerTexts(errs field.ErrorList) field.ErrorList {
	for i, err := range errs {
		match := ownerIndex().FindStringSubmatch(err.Field)
		if match == nil || err.Type != field.ErrorTypeRequired {
			continue
		}
		text := "must not be empty"
		if match[1] == "apiVersion" {
			text = "version must not be empty"
		}
		errs[i] = field.Invalid(field.NewPath("metadata", "ownerReferences", match[1]), "", text)
	}
	return errs
}

// checkVersion compares the resourceVersions of an update and the stored object.
func (op *operation) checkVersion(obj, old *unstructuredv1.Unstructured) error {
	version := obj.GetResourceVersion()
	if err := parseVersion(version); err != nil {
		return err
	}
	switch {
	case version == "" || version == "0":
		if !op.rules.strategy().needsVersion {
			obj.SetResourceVersion(old.GetResourceVersion())
			return nil
		}
		kind := op.groupKind()
		kind.Kind = op.resource.Plural
		return apierrors.NewInvalid(kind, op.req.Name, field.ErrorList{
			field.Invalid(field.NewPath("metadata", "resourceVersion"), 0, "must be specified for an update"),
		})
	case version != old.GetResourceVersion():
		return apierrors.NewConflict(op.groupResource(), op.req.Name, errors.New(optimisticLockMessage))
	}
	return nil
}

// parseVersion returns an error if an object's resourceVersion is not a number. Like on a real server, it is an internal error.
func parseVersion(version string) error {
	if version == "" {
		return nil
	}
	_, err := strconv.ParseUint(version, 10, 64)
	return err
}

// checkUID compares the UIDs of an update and the stored object. The stored UID is empty if there is no object.
func (op *operation) checkUID(uid types.UID, old *unstructuredv1.Unstructured) error {
	if uid == "" || uid == old.GetUID() {
		return nil
	}
	reason := fmt.Errorf("StorageError: invalid object, Code: 4, Key: %s, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: %s, UID in object meta: %s",
		op.storageKey(), uid, old.GetUID())
	return apierrors.NewConflict(op.groupResource(), op.req.Name, reason)
}

// storageKey returns the etcd key of the request's object, as shown in error texts.
func (op *operation) storageKey() string {
	parts := []string{"/registry"}
	if op.options.isDryRun() {
		parts[0] = ""
	}
	switch {
	case op.resource.Definition != nil:
		parts = append(parts, op.resource.Group, op.resource.Plural)
	case op.resource.Group == "" && op.resource.Plural == "services":
		parts = append(parts, "services", "specs")
	case op.resource.Group == "" && op.resource.Plural == "endpoints":
		parts = append(parts, "services", "endpoints")
	case op.resource.Group == "" && op.resource.Plural == "nodes":
		parts = append(parts, "minions")
	case op.resource.Group == "" && op.resource.Plural == "replicationcontrollers":
		parts = append(parts, "controllers")
	case op.resource.Group == "networking.k8s.io" && op.resource.Plural == "ingresses":
		parts = append(parts, "ingress")
	case op.resource.Group == "apiextensions.k8s.io" || op.resource.Group == "apiregistration.k8s.io":
		parts = append(parts, op.resource.Group, op.resource.Plural)
	default:
		parts = append(parts, op.resource.Plural)
	}
	if namespace := op.objectNamespace(); namespace != "" {
		parts = append(parts, namespace)
	}
	return strings.Join(append(parts, op.req.Name), "/")
}

// suffixLetters is the alphabet of generated name suffixes.
const suffixLetters = "bcdfghjklmnpqrstvwxz2456789"

// random generates UIDs and the suffixes of generated names. With a seed, equal sequences of writes get equal values.
type random struct {
	mu     sync.Mutex
	seeded *rand.Rand // nil without a seed
}

func newRandom(seed uint64) *random {
	r := &random{}
	if seed != 0 {
		r.seeded = rand.New(rand.NewPCG(seed, 1))
	}
	return r
}

func (r *random) uid() types.UID {
	if r.seeded == nil {
		return uuid.NewUUID()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	high := r.seeded.Uint64()
	low := r.seeded.Uint64()
	return types.UID(fmt.Sprintf("%08x-%04x-4%03x-a%03x-%012x", high>>32, high>>16&0xffff, high&0xfff, low>>48&0xfff, low&0xffffffffffff))
}

func (r *random) suffix(length int) string {
	if r.seeded == nil {
		return utilrand.String(length)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	text := make([]byte, length)
	for i := range text {
		text[i] = suffixLetters[r.seeded.IntN(len(suffixLetters))]
	}
	return string(text)
}
