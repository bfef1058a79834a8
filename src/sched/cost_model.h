// What work has cost so far, to choose between keeping KV on the device, bringing it back, and computing it again (spec
// B19).
//
// A token costs more to evaluate the more cells are in use, whoever's they are: llama.cpp attends over all up to the
// highest. So the time per token is taken as  base + tax * cells,  fitted by least squares over the steps that were
// seen, the older ones counting less and less. Nothing is assumed: until steps were seen with few and with many cells,
// the tax is 0, and until anything was restored, restoring is free. Threading: the engine thread. Pure arithmetic, no
// clock.
#pragma once

#include "base/clock.h"
#include "base/ids.h"

namespace coppice::sched {

class CostModel {
 public:
  // `spread_min`: how far apart the numbers of cells have to have been, as a standard deviation, before a tax is
  // believed.
  explicit CostModel(double spread_min = 256) : prefill_{spread_min}, decode_{spread_min} {}

  // A step that evaluated prompt tokens, or one token of each of some answers, with so many cells in use.
  void note_prefill(TokenPos tokens, TokenPos cells, Duration took);
  void note_decode(TokenPos cells, Duration took);
  void note_answer(TokenPos tokens);  // generated
  // Any step: so many prompt tokens, and whether answers went on in it.
  void note_rent(TokenPos prompt_tokens, bool decoding);
  // Of the block that was restored, though maybe only a part of it was kept.
  void note_restored_cells(TokenPos tokens, Duration took);
  void note_restored_state(TokenPos tokens, Duration took);  // with these cells
  void note_saved(TokenPos tokens, Duration took);           // a full block

  // Seconds. `cells`: in use meanwhile.
  double computing_s(TokenPos tokens, TokenPos cells) const;
  double restoring_s(TokenPos tokens) const { return restore_s_ * tokens + state_s_; }
  double saving_s(TokenPos tokens) const { return save_s_ * tokens; }

  // Whether restoring blocks of `restored` tokens is faster than computing `gain` tokens.
  bool worth_restoring(TokenPos gain, TokenPos restored, TokenPos cells) const;

  // What one idle cell has cost all steps together, in seconds; only differences mean something. And what it will cost
  // a request that has `tokens` to compute, and then an answer of the usual length.
  double rent_s() const { return rent_s_; }
  double rent_ahead_s(TokenPos tokens) const { return prefill_.slope() * tokens + decode_.slope() * answer_tokens_; }

 private:
  // y = base + slope * x over points that fade.
  class Line {
   public:
    explicit Line(double spread_min) : spread_min_(spread_min) {}
    void add(double x, double y);
    double at(double x) const;
    double slope() const;

   private:
    double mean_y() const { return n_ > 0 ? y_ / n_ : 0; }
    double spread_min_;
    double n_ = 0, x_ = 0, y_ = 0, xx_ = 0, xy_ = 0;
  };

  Line prefill_;                                                         // seconds per token, by cells
  Line decode_;                                                          // seconds per step, by cells
  double answer_tokens_ = 0, save_s_ = 0, restore_s_ = 0, state_s_ = 0;  // moving averages; 0: nothing seen
  double rent_s_ = 0;
};

}  // namespace coppice::sched
