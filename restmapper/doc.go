// Package restmapper resolves resource names typed by users: a plural, a singular, a kind or a short name, optionally with group
// and version, as accepted by kubectl.
//
//	mapper := restmapper.New(discovery.New(conn, nil))
//	resource, err := mapper.Resource(ctx, "deploy")
//	if err != nil {
//		return err
//	}
//	fmt.Println(resource.GVR, resource.GVK, resource.Namespaced)
//
// The result is the [discovery.Resource] with path, scope, verbs and subresources. The errors are a [NoMatchError] with
// suggestions for an unknown or removed name, an [AmbiguousError] for a name with several resources, and an [UnavailableError] if
// discovery fails now. [Mapper.WaitForResources] waits for names to be served. [Mapper.RESTMapper] adapts a mapper to
// apimachinery's meta.RESTMapper.
package restmapper
