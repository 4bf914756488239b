package sanitize

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Limits of the texts of a Status, in bytes.
const (
	maxStatusMessage = 16 << 10 // some messages list every invalid field
	maxStatusWord    = 1 << 10  // a reason, a name, a field
)

// Status makes the texts of a Status that a server or a node sent safe to print, in place.
func Status(status *metav1.Status) {
	status.Message = Text(status.Message, maxStatusMessage)
	status.Reason = metav1.StatusReason(Text(string(status.Reason), maxStatusWord))
	details := status.Details
	if details == nil {
		return
	}
	for _, text := range []*string{&details.Name, &details.Group, &details.Kind} {
		*text = Text(*text, maxStatusWord)
	}
	for i := range details.Causes {
		cause := &details.Causes[i]
		cause.Type = metav1.CauseType(Text(string(cause.Type), maxStatusWord))
		cause.Message = Text(cause.Message, maxStatusMessage)
		cause.Field = Text(cause.Field, maxStatusWord)
	}
}
