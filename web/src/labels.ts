/** What every answer says of the labels that were given by hand, in the map and in recordings. */

export interface Labels {
  labels: Record<string, string>;
  names: string[];
  can_undo: boolean;
}
