#include "api/tree_routes.h"

#include "api/place_json.h"

namespace coppice::api {
namespace {

constexpr std::int64_t kDepthDefault = 4, kDepthMax = 64;
constexpr std::int64_t kNodesDefault = 200, kNodesMax = 2000;

// Recursion goes as deep as the client was allowed to ask for.
Json node_json(const sched::TreeNode& node) {
  Json ends = Json::array(), children = Json::array();
  for (const auto& place : node.ends) ends.push_back(place_json(place));
  for (const auto& child : node.children) children.push_back(node_json(child));
  return {
      {"begin", node.begin},
      {"length", node.length},
      {"text", node.text},
      {"sequences", node.sequences},
      {"ends", std::move(ends)},
      {"children", std::move(children)},
      {"hidden_children", node.hidden_children},
  };
}

}  // namespace

Result<Inspection> get_tree(const Call& call) {
  const auto ns = call.query_ns();
  if (!ns) return std::unexpected(ns.error());
  QueryReader in(call.http.query);
  const auto depth = static_cast<std::int32_t>(in.integer("depth", 1, kDepthMax, kDepthDefault));
  const auto nodes = static_cast<std::int32_t>(in.integer("nodes", 1, kNodesMax, kNodesDefault));
  if (in.error()) return std::unexpected(*in.error());
  return inspection(
      [=, ns = *ns](sched::Inspector& engine) { return Result<sched::TreeNode>(engine.tree(ns, depth, nodes)); },
      node_json);
}

}  // namespace coppice::api
